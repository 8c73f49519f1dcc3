/* The gradient of attention: dq, dk, dv, with the weights recomputed block by block from q, k and the log-sum-exp.
 * FlashAttention (see attention.c), algorithm 4.
 */
#include "ops/attention.h"

enum { DY, Q, K, V, Y, LSE };

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_attention_check(call, Q, STK_ATTENTION_GRAD_FIXED));
    stk_tensor_desc q = call->in[Q];
    STK_RETURN_IF_ERROR(stk_rule_need("dy", call->in[DY], q.dtype, q.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("y", call->in[Y], q.dtype, q.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("lse", call->in[LSE], stk_rule_stat_dtype(q.dtype),
                                      STK_SHAPE(q.shape.dim[0], q.shape.dim[2], q.shape.dim[1])));
    for (int i = 0; i < 3; i++)
        call->out[i] = call->in[Q + i];
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 10 * stk_attention_pairs(call, Q) * (double)call->in[Q].shape.dim[3];
}

static void decompose(const stk_decompose_call *call)
{
    enum { SIZE = 1 << 3 };
    stk_attention_parts p = stk_attention_compose(call, Q, STK_ATTENTION_GRAD_FIXED);
    stk_value dy = stk_attention_swap_heads(call->in[DY]), y = stk_attention_swap_heads(call->in[Y]);
    stk_value total = stk_compose_sum(stk_mul(stk_compose_wide(dy), stk_compose_wide(y)), SIZE);
    stk_value weights = stk_attention_compose_weights(&p, call->in[LSE]);
    stk_value dweights = stk_attention_compose_drop(&p, stk_attention_multiply(dy, p.v, false, true));
    stk_value ds = stk_scale_by(stk_mul(weights, stk_sub(dweights, total)), call->attrs->attention.scale);
    stk_value kept = stk_attention_compose_drop(&p, weights);
    stk_compose_set(call, 0, stk_attention_swap_heads(stk_attention_multiply(ds, p.k, false, false)));
    stk_compose_set(call, 1, stk_attention_swap_heads(stk_attention_multiply(ds, p.q, true, false)));
    stk_compose_set(call, 2, stk_attention_swap_heads(stk_attention_multiply(kept, dy, true, false)));
}

const stk_op_rule stk_rule_attention_grad = {
    .name = "attention_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = stk_attention_print,
    .decompose = decompose,
};

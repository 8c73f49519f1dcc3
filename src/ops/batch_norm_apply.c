/* The result of a batch_norm again, from its input and the statistics that it found: what is recomputed in the backward
 * pass instead of being kept. It has no gradient, since it is made after autodiff.
 */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    static const char *const roles[] = {"x", "scale", "bias", "mean", "inv_std"};
    stk_tensor_desc x = call->in[0];
    if (call->n_in != 5 && call->n_in != 6)
        return stk_fail(STK_INVALID, "%d inputs do not fit: it takes 5 and perhaps a residual", call->n_in);
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.shape.rank < 2) return stk_rule_need_rank("x", x, 2);
    stk_shape channels = stk_rule_vector_shape(x.shape.dim[x.shape.rank - 1]);
    for (int i = 1; i < 5; i++)
        STK_RETURN_IF_ERROR(stk_rule_need(roles[i], call->in[i], stk_rule_stat_dtype(x.dtype), channels));
    if (call->n_in == 6) STK_RETURN_IF_ERROR(stk_rule_need("residual", call->in[5], x.dtype, x.shape));
    call->out[0] = x;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = (call->n_in == 6 ? 4 : 3) * stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_rule_batch_norm.print(attrs, out);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value normal = stk_mul(stk_sub(stk_compose_wide(call->in[0]), call->in[3]), call->in[4]);
    stk_value y = stk_add(stk_mul(normal, call->in[1]), call->in[2]);
    if (call->n_in == 6) y = stk_add(y, stk_compose_wide(call->in[5]));
    stk_compose_set(call, 0, stk_compose_relu(y, call->attrs->batch_norm.relu));
}

const stk_op_rule stk_rule_batch_norm_apply = {
    .name = "batch_norm_apply",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};

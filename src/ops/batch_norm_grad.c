/* The gradient of batch_norm. With relu, dy counts where the forward output was > 0. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    static const char *const roles[] = {"dy", "x", "scale", "bias", "mean", "inv_std"};
    stk_tensor_desc x = call->in[1];
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.shape.rank < 2) return stk_rule_need_rank("x", x, 2);
    STK_RETURN_IF_ERROR(stk_rule_need("dy", call->in[0], x.dtype, x.shape));
    stk_shape channels = stk_rule_vector_shape(x.shape.dim[x.shape.rank - 1]);
    stk_dtype dtype = stk_rule_stat_dtype(x.dtype);
    for (int i = 2; i < 6; i++)
        STK_RETURN_IF_ERROR(stk_rule_need(roles[i], call->in[i], dtype, channels));
    call->out[0] = x;
    stk_rule_out(call, 1, dtype, channels);
    stk_rule_out(call, 2, dtype, channels);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 10 * stk_rule_count(call->in[1].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_rule_batch_norm.print(attrs, out);
}

const stk_op_rule stk_rule_batch_norm_grad = {
    .name = "batch_norm_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 6,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = print,
};

/* The gradient of group_norm. */
#include "ops/group_norm.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[1];
    stk_shape channels, groups;
    stk_dtype dtype = stk_rule_stat_dtype(x.dtype);
    STK_RETURN_IF_ERROR(stk_group_norm_check(call->attrs, x, &channels, &groups));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", call->in[0], x.dtype, x.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("scale", call->in[2], dtype, channels));
    STK_RETURN_IF_ERROR(stk_rule_need("mean", call->in[3], dtype, groups));
    STK_RETURN_IF_ERROR(stk_rule_need("inv_std", call->in[4], dtype, groups));
    call->out[0] = x;
    stk_rule_out(call, 1, dtype, channels);
    stk_rule_out(call, 2, dtype, channels);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 14 * stk_rule_count(call->in[1].shape);
}

const stk_op_rule stk_rule_group_norm_grad = {
    .name = "group_norm_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 5,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = stk_group_norm_print,
};

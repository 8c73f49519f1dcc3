/* The gradient of group_norm. */
#include "ops/compose.h"
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

static void decompose(const stk_decompose_call *call)
{
    enum { ROWS_AND_CHANNELS = 1 << 1 | 1 << 3, SAMPLES_AND_ROWS = 1 << 0 | 1 << 1 };
    stk_shape split = stk_group_norm_split(call->attrs, stk_value_shape(call->in[1]));
    stk_shape channels = stk_value_shape(call->in[2]);
    stk_value dy = stk_reshape(stk_compose_wide(call->in[0]), split);
    stk_value x = stk_reshape(stk_compose_wide(call->in[1]), split);
    stk_value scale = stk_reshape(call->in[2], STK_SHAPE(split.dim[2], split.dim[3]));
    stk_value mean = stk_compose_keep(call->in[3], split, ROWS_AND_CHANNELS);
    stk_value inv_std = stk_compose_keep(call->in[4], split, ROWS_AND_CHANNELS);
    stk_value normal = stk_mul(stk_sub(x, mean), inv_std), d = stk_mul(dy, scale);
    stk_value along = stk_mul(normal, stk_compose_mean(stk_mul(d, normal), ROWS_AND_CHANNELS));
    stk_value dx = stk_mul(inv_std, stk_sub(stk_sub(d, stk_compose_mean(d, ROWS_AND_CHANNELS)), along));
    stk_compose_set(call, 0, stk_reshape(dx, stk_value_shape(call->in[1])));
    stk_compose_set(call, 1, stk_reshape(stk_reduce_sum(stk_mul(dy, normal), SAMPLES_AND_ROWS), channels));
    stk_compose_set(call, 2, stk_reshape(stk_reduce_sum(dy, SAMPLES_AND_ROWS), channels));
}

const stk_op_rule stk_rule_group_norm_grad = {
    .name = "group_norm_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 5,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = stk_group_norm_print,
    .decompose = decompose,
};

/* The gradient of layer_norm. */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[1];
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.shape.rank < 1) return stk_rule_need_rank("x", x, 1);
    stk_shape last = stk_rule_vector_shape(x.shape.dim[x.shape.rank - 1]), rows = x.shape;
    stk_dtype dtype = stk_rule_stat_dtype(x.dtype);
    rows.dim[--rows.rank] = 0;
    STK_RETURN_IF_ERROR(stk_rule_need("dy", call->in[0], x.dtype, x.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("scale", call->in[2], dtype, last));
    STK_RETURN_IF_ERROR(stk_rule_need("mean", call->in[3], dtype, rows));
    STK_RETURN_IF_ERROR(stk_rule_need("inv_std", call->in[4], dtype, rows));
    call->out[0] = x;
    stk_rule_out(call, 1, dtype, last);
    stk_rule_out(call, 2, dtype, last);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 14 * stk_rule_count(call->in[1].shape);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value dy = stk_compose_wide(call->in[0]), x = stk_compose_wide(call->in[1]);
    stk_shape shape = stk_value_shape(x);
    uint32_t last = 1u << (shape.rank - 1);
    stk_value mean = stk_compose_keep(call->in[3], shape, last), inv_std = stk_compose_keep(call->in[4], shape, last);
    stk_value normal = stk_mul(stk_sub(x, mean), inv_std), d = stk_mul(dy, call->in[2]);
    stk_value along = stk_mul(normal, stk_compose_mean(stk_mul(d, normal), last));
    stk_compose_set(call, 0, stk_mul(inv_std, stk_sub(stk_sub(d, stk_compose_mean(d, last)), along)));
    stk_compose_set(call, 1, stk_compose_sum_rows(stk_mul(dy, normal)));
    stk_compose_set(call, 2, stk_compose_sum_rows(dy));
}

const stk_op_rule stk_rule_layer_norm_grad = {
    .name = "layer_norm_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 5,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .decompose = decompose,
};

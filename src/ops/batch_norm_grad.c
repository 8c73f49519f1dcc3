/* The gradient of batch_norm. With relu, dy counts where the forward output was > 0. */
#include "ops/batch_norm.h"

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

void stk_batch_norm_compose_grad(const stk_decompose_call *call, stk_value d, stk_value normal, stk_value scale,
                                 stk_value inv_std)
{
    uint32_t rows = stk_compose_rows(stk_value_shape(normal));
    stk_value along = stk_mul(normal, stk_compose_mean(stk_mul(d, normal), rows));
    stk_value dx = stk_sub(stk_sub(d, stk_compose_mean(d, rows)), along);
    stk_compose_set(call, 0, stk_mul(stk_mul(scale, inv_std), dx));
    stk_compose_set(call, 1, stk_compose_sum_rows(stk_mul(d, normal)));
    stk_compose_set(call, 2, stk_compose_sum_rows(d));
}

static void decompose(const stk_decompose_call *call)
{
    stk_value d = stk_compose_wide(call->in[0]), scale = call->in[2], inv_std = call->in[5];
    stk_value normal = stk_mul(stk_sub(stk_compose_wide(call->in[1]), call->in[4]), inv_std);
    if (call->attrs->batch_norm.relu) {
        stk_value y = stk_add(stk_mul(normal, scale), call->in[3]);
        d = stk_compose_where(stk_greater(y, stk_compose_constant(y, 0)), d, 0);
    }
    stk_batch_norm_compose_grad(call, d, normal, scale, inv_std);
}

const stk_op_rule stk_rule_batch_norm_grad = {
    .name = "batch_norm_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 6,
    .n_out = 3,
    .infer = infer,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};

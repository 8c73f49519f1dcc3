/* The gradient of a batch_norm whose result y was added to another value and went through a ReLU: what comes back is
 * d = dy + dy2 where y > 0, else 0. d is a result as well, since it goes on to the other value.
 */
#include "ops/batch_norm.h"

static stk_status infer(stk_op_call *call)
{
    static const char *const roles[] = {"x", "dy", "dy2", "y", "scale", "mean", "inv_std"};
    enum { FIRST_VECTOR = 4, N = 7 };
    stk_tensor_desc x = call->in[0];
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.shape.rank < 2) return stk_rule_need_rank("x", x, 2);
    for (int i = 1; i < FIRST_VECTOR; i++)
        STK_RETURN_IF_ERROR(stk_rule_need(roles[i], call->in[i], x.dtype, x.shape));
    stk_shape channels = stk_rule_vector_shape(x.shape.dim[x.shape.rank - 1]);
    stk_dtype dtype = stk_rule_stat_dtype(x.dtype);
    for (int i = FIRST_VECTOR; i < N; i++)
        STK_RETURN_IF_ERROR(stk_rule_need(roles[i], call->in[i], dtype, channels));
    call->out[0] = x;
    stk_rule_out(call, 1, dtype, channels);
    stk_rule_out(call, 2, dtype, channels);
    call->out[3] = x;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 9 * stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_rule_batch_norm.print(attrs, out);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value y = call->in[3], scale = call->in[4], inv_std = call->in[6];
    stk_value d = stk_add(stk_compose_wide(call->in[1]), stk_compose_wide(call->in[2]));
    d = stk_compose_where(stk_greater(y, stk_compose_constant(y, 0)), d, 0);
    stk_value normal = stk_mul(stk_sub(stk_compose_wide(call->in[0]), call->in[5]), inv_std);
    stk_batch_norm_compose_grad(call, d, normal, scale, inv_std);
    stk_compose_set(call, 3, d);
}

const stk_op_rule stk_rule_batch_norm_sum_grad = {
    .name = "batch_norm_sum_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 7,
    .n_out = 4,
    .infer = infer,
    .cost = cost,
    .print = print,
    .decompose = decompose,
};

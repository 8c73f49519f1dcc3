/* The gradient of softmax: dx = y * (dy - sum(y * dy)) in each row. */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc y = call->in[0];
    STK_RETURN_IF_ERROR(stk_rule_need_float("y", y));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", call->in[1], y.dtype, y.shape));
    if (y.shape.rank < 1) return stk_rule_need_rank("y", y, 1);
    call->out[0] = y;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 4 * stk_rule_count(call->in[0].shape);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value y = stk_compose_wide(call->in[0]), dy = stk_compose_wide(call->in[1]);
    uint32_t last = 1u << (stk_value_shape(y).rank - 1);
    stk_compose_set(call, 0, stk_mul(y, stk_sub(dy, stk_compose_sum(stk_mul(y, dy), last))));
}

const stk_op_rule stk_rule_softmax_grad = {
    .name = "softmax_grad",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .decompose = decompose,
};

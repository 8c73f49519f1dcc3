/* Softmax over the last axis. */
#include "ops/compose.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0];
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.shape.rank < 1) return stk_fail(STK_INVALID, "x %s must have an axis", stk_desc_text(x, text));
    call->out[0] = x;
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_value in[2] = {call->out[0], call->grad_out[0]};
    call->grad_in[0] = stk_rule_add(STK_OP_softmax_grad, NULL, in, 2);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 5 * stk_rule_count(call->in[0].shape);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value x = stk_compose_wide(call->in[0]);
    uint32_t last = 1u << (stk_value_shape(x).rank - 1);
    stk_value e = stk_exp(stk_sub(x, stk_compose_max(x, last)));
    stk_compose_set(call, 0, stk_div(e, stk_compose_sum(e, last)));
}

const stk_op_rule stk_rule_softmax = {
    .name = "softmax",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .decompose = decompose,
};

stk_value stk_softmax(stk_value x)
{
    return stk_rule_add(STK_OP_softmax, NULL, &x, 1);
}

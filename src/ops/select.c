/* y = condition ? a : b, element by element. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc c = call->in[0], a = call->in[1], b = call->in[2];
    char tc[STK_SHAPE_TEXT_BYTES], ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
    if (c.dtype != STK_BOOL)
        return stk_fail(STK_INVALID, "the condition %s must be of dtype bool", stk_desc_text(c, tc));
    if (a.dtype != b.dtype || !stk_shape_equal(a.shape, b.shape) || !stk_shape_equal(c.shape, a.shape))
        return stk_fail(STK_INVALID, "condition %s, a %s and b %s need equal shapes, a and b equal dtypes",
                        stk_desc_text(c, tc), stk_desc_text(a, ta), stk_desc_text(b, tb));
    call->out[0] = a;
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value dy = call->grad_out[0];
    if (dy.id < 0 || !stk_dtype_is_float(stk_value_dtype(dy))) return STK_OK;
    stk_value zero = stk_rule_scalar(call->graph, stk_value_dtype(dy), 0);
    if (call->need[1]) {
        call->grad_in[1] = stk_select(call->in[0], dy, zero);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[1]));
    }
    if (call->need[2]) {
        call->grad_in[2] = stk_select(call->in[0], zero, dy);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[2]));
    }
    return STK_OK;
}

const stk_op_rule stk_rule_select = {
    .name = "select",
    .kind = STK_KIND_ELEMENT,
    .n_in = 3,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
};

stk_value stk_select(stk_value condition, stk_value a, stk_value b)
{
    stk_value in[3] = {condition, a, b};
    if (!stk_rule_broadcast_all(in, 3)) return stk_rule_none(condition.graph);
    return stk_rule_add(STK_OP_select, NULL, in, 3);
}

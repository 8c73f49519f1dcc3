/* Axes in another order: y.dim[i] = x.dim[permutation[i]]. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    const int32_t *p = call->attrs->permutation;
    stk_tensor_desc x = call->in[0], y = x;
    uint32_t seen = 0;
    for (int i = 0; i < x.shape.rank; i++) {
        if (p[i] < 0 || p[i] >= x.shape.rank || (seen >> p[i] & 1)) {
            char text[STK_SHAPE_TEXT_BYTES];
            return stk_fail(STK_INVALID, "axis %d is out of range or named twice in the permutation of x %s", p[i],
                            stk_shape_text(x.shape, text));
        }
        seen |= 1u << p[i];
        y.shape.dim[i] = x.shape.dim[p[i]];
    }
    call->out[0] = y;
    return STK_OK;
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    int32_t back[STK_MAX_RANK] = {0};
    for (int i = 0; i < stk_value_shape(call->in[0]).rank; i++)
        back[call->attrs->permutation[i]] = i;
    call->grad_in[0] = stk_transpose(call->grad_out[0], back);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    out->flops = 0;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    /* The rank is not known here: zeros at the end repeat an axis and are left out. */
    stk_text_add(out, " permutation=");
    uint32_t seen = 0;
    for (int i = 0; i < STK_MAX_RANK; i++) {
        int axis = attrs->permutation[i];
        if (axis < 0 || (seen >> axis & 1)) break;
        seen |= 1u << axis;
        stk_text_add(out, i ? ",%d" : "%d", axis);
    }
}

const stk_op_rule stk_rule_transpose = {
    .name = "transpose",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

stk_value stk_transpose(stk_value x, const int32_t *permutation)
{
    if (!stk_rule_usable(x)) return stk_rule_none(x.graph);
    stk_attrs attrs = stk_attrs_zero();
    for (int i = 0; i < stk_value_shape(x).rank; i++)
        attrs.permutation[i] = permutation[i];
    return stk_rule_add(STK_OP_transpose, &attrs, &x, 1);
}

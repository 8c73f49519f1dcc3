/* y = f(a, b), element by element, for equal shapes; the builders insert the broadcasts. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    int kind = call->attrs->element.kind;
    stk_tensor_desc a = call->in[0], b = call->in[1];
    char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
    if (kind < 0 || kind >= STK_N_BINARY) return stk_fail(STK_INVALID, "no such kind: %d", kind);
    if (a.dtype != b.dtype || !stk_shape_equal(a.shape, b.shape))
        return stk_fail(STK_INVALID, "'%s' of a %s and b %s needs equal dtypes and shapes", stk_binary_name(kind),
                        stk_desc_text(a, ta), stk_desc_text(b, tb));
    bool float_only = kind == STK_BINARY_div || kind == STK_BINARY_pow;
    if (a.dtype == STK_BOOL || (float_only && !stk_dtype_is_float(a.dtype)))
        return stk_fail(STK_INVALID, "'%s' of a %s needs %s", stk_binary_name(kind), stk_desc_text(a, ta),
                        float_only ? "a float dtype; cast first" : "numbers; cast first");
    call->out[0] = a;
    return STK_OK;
}

static void grad_div(const stk_grad_call *call, stk_value dy)
{
    stk_value b = call->in[1], da = stk_div(dy, b);
    if (call->need[0]) call->grad_in[0] = da;
    if (call->need[1]) call->grad_in[1] = stk_neg(stk_mul(da, call->out[0]));
}

/* Ties share the gradient, as in PyTorch. The mask is 1, 1/2 or 0 for a, and the rest for b. */
static void grad_extreme(const stk_grad_call *call, stk_value dy, bool is_max)
{
    stk_value a = call->in[0], b = call->in[1];
    stk_value zero = stk_rule_scalar(dy.graph, stk_value_dtype(dy), 0);
    stk_value half = stk_scale_by(dy, 0.5), tie = stk_equal(a, b);
    for (int i = 0; i < 2; i++) {
        if (!call->need[i]) continue;
        stk_value wins = is_max == (i == 0) ? stk_greater(a, b) : stk_less(a, b);
        call->grad_in[i] = stk_select(tie, half, stk_select(wins, dy, zero));
    }
}

/* Both limits are spelled out, since 0 * inf would give NaN: x^0 is 1 for every x, and 0^b is 0 for b > 0. */
static void grad_pow(const stk_grad_call *call, stk_value dy)
{
    stk_value a = call->in[0], b = call->in[1];
    stk_value zero = stk_rule_scalar(dy.graph, stk_value_dtype(dy), 0);
    if (call->need[0]) {
        stk_value slope = stk_mul(b, stk_pow(a, stk_shift_by(b, -1)));
        call->grad_in[0] = stk_select(stk_equal(b, zero), zero, stk_mul(dy, slope));
    }
    if (call->need[1]) {
        stk_value slope = stk_mul(call->out[0], stk_log(a));
        stk_value is_zero = stk_equal(a, zero), keeps = stk_greater_equal(b, zero);
        stk_value flat = stk_select(keeps, zero, stk_mul(dy, slope));
        call->grad_in[1] = stk_select(is_zero, flat, stk_mul(dy, slope));
    }
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value a = call->in[0], b = call->in[1], dy = call->grad_out[0];
    if (dy.id < 0) return STK_OK;
    switch ((stk_binary_kind)call->attrs->element.kind) {
    case STK_BINARY_add:
        if (call->need[0]) call->grad_in[0] = dy;
        if (call->need[1]) call->grad_in[1] = dy;
        break;
    case STK_BINARY_sub:
        if (call->need[0]) call->grad_in[0] = dy;
        if (call->need[1]) call->grad_in[1] = stk_neg(dy);
        break;
    case STK_BINARY_mul:
        if (call->need[0]) call->grad_in[0] = stk_mul(dy, b);
        if (call->need[1]) call->grad_in[1] = stk_mul(dy, a);
        break;
    case STK_BINARY_div: grad_div(call, dy); break;
    case STK_BINARY_max: grad_extreme(call, dy, true); break;
    case STK_BINARY_min: grad_extreme(call, dy, false); break;
    case STK_BINARY_pow: grad_pow(call, dy); break;
    default: break;
    }
    for (int i = 0; i < 2; i++)
        if (call->need[i]) STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[i]));
    return STK_OK;
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " kind=%s", stk_binary_name(attrs->element.kind));
}

const stk_op_rule stk_rule_binary = {
    .name = "binary",
    .kind = STK_KIND_ELEMENT,
    .n_in = 2,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .print = print,
};

static stk_value add_binary(int kind, stk_value a, stk_value b)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.element.kind = kind;
    stk_value in[2] = {a, b};
    if (!stk_rule_broadcast_all(in, 2)) return stk_rule_none(a.graph);
    return stk_rule_add(STK_OP_binary, &attrs, in, 2);
}

#define X(name)                                                                                                        \
    stk_value stk_##name(stk_value a, stk_value b)                                                                     \
    {                                                                                                                  \
        return add_binary(STK_BINARY_##name, a, b);                                                                    \
    }
STK_BINARY_LIST(X)
#undef X

stk_value stk_scale_by(stk_value x, double factor)
{
    if (!stk_rule_usable(x)) return stk_rule_none(x.graph);
    return stk_mul(x, stk_rule_scalar(x.graph, stk_value_dtype(x), factor));
}

stk_value stk_shift_by(stk_value x, double term)
{
    if (!stk_rule_usable(x)) return stk_rule_none(x.graph);
    return stk_add(x, stk_rule_scalar(x.graph, stk_value_dtype(x), term));
}

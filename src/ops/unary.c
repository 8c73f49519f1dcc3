/* y = f(x), element by element. */
#include "ops/rule.h"

static bool allows_integers(int kind)
{
    return kind == STK_UNARY_neg || kind == STK_UNARY_abs || kind == STK_UNARY_square || kind == STK_UNARY_sign ||
           kind == STK_UNARY_relu;
}

static stk_status infer(stk_op_call *call)
{
    int kind = call->attrs->element.kind;
    stk_tensor_desc x = call->in[0];
    char text[STK_SHAPE_TEXT_BYTES];
    if (kind < 0 || kind >= STK_N_UNARY) return stk_fail(STK_INVALID, "no such kind: %d", kind);
    bool is_signed_integer = x.dtype == STK_I64 || x.dtype == STK_I32 || x.dtype == STK_I8;
    if (!stk_dtype_is_float(x.dtype) && !(is_signed_integer && allows_integers(kind)))
        return stk_fail(STK_INVALID, "'%s' of x %s needs a float dtype%s", stk_unary_name(kind), stk_desc_text(x, text),
                        allows_integers(kind) ? " or a signed integer" : "");
    call->out[0] = x;
    return STK_OK;
}

/* 1 - y * y, for tanh. */
static stk_value one_minus_square(stk_value y)
{
    return stk_shift_by(stk_neg(stk_square(y)), 1);
}

/* The derivative times dy; id -1 where it is zero everywhere. */
static stk_value derive(int kind, stk_value x, stk_value y, stk_value dy)
{
    switch ((stk_unary_kind)kind) {
    case STK_UNARY_neg: return stk_neg(dy);
    case STK_UNARY_abs: return stk_mul(dy, stk_sign(x));
    case STK_UNARY_exp: return stk_mul(dy, y);
    case STK_UNARY_log: return stk_div(dy, x);
    case STK_UNARY_sqrt: return stk_div(stk_scale_by(dy, 0.5), y);
    case STK_UNARY_rsqrt: return stk_mul(stk_scale_by(dy, -0.5), stk_mul(y, stk_square(y)));
    case STK_UNARY_reciprocal: return stk_neg(stk_mul(dy, stk_square(y)));
    case STK_UNARY_square: return stk_mul(dy, stk_scale_by(x, 2));
    case STK_UNARY_tanh: return stk_mul(dy, one_minus_square(y));
    case STK_UNARY_sigmoid: return stk_mul(dy, stk_mul(y, stk_shift_by(stk_neg(y), 1)));
    /* y tells as much as x does, and then x need not be kept. */
    case STK_UNARY_relu: {
        stk_value zero = stk_rule_scalar(dy.graph, stk_value_dtype(y), 0);
        return stk_select(stk_greater(y, zero), dy, zero);
    }
    case STK_UNARY_erf: return stk_mul(stk_scale_by(dy, 1.12837916709551257390), stk_exp(stk_neg(stk_square(x))));
    case STK_UNARY_sin: return stk_mul(dy, stk_cos(x));
    case STK_UNARY_cos: return stk_neg(stk_mul(dy, stk_sin(x)));
    case STK_UNARY_log1p: return stk_div(dy, stk_shift_by(x, 1));
    case STK_UNARY_expm1: return stk_mul(dy, stk_shift_by(y, 1));
    default: return stk_rule_none(dy.graph);
    }
}

static stk_status grad(const stk_grad_call *call)
{
    int kind = call->attrs->element.kind;
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    if (kind == STK_UNARY_sign || kind == STK_UNARY_floor || kind == STK_UNARY_ceil || kind == STK_UNARY_round)
        return STK_OK;
    call->grad_in[0] = derive(kind, call->in[0], call->out[0], call->grad_out[0]);
    return stk_rule_built(call->grad_in[0]);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " kind=%s", stk_unary_name(attrs->element.kind));
}

const stk_op_rule stk_rule_unary = {
    .name = "unary",
    .kind = STK_KIND_ELEMENT,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .print = print,
};

static stk_value add_unary(int kind, stk_value x)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.element.kind = kind;
    return stk_rule_add(STK_OP_unary, &attrs, &x, 1);
}

#define X(name)                                                                                                        \
    stk_value stk_##name(stk_value x)                                                                                  \
    {                                                                                                                  \
        return add_unary(STK_UNARY_##name, x);                                                                         \
    }
STK_UNARY_LIST(X)
#undef X

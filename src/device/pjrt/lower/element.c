/* Element by element: constant, unary, binary, compare, select, cast, accumulate. */
#include <math.h>

#include "base/error.h"
#include "device/pjrt/lowering.h"

stk_status pjrt_lower_constant(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    (void)n_in;
    (void)in;
    out[0] = pjrt_constant(m, call->out[0], call->attrs->constant.value);
    return STK_OK;
}

/* StableHLO has no erf of its own; CHLO, which every XLA reads, does. */
static pjrt_value make_erf(pjrt_module *m, pjrt_value x)
{
    char type[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, x.desc);
    stk_text_add(&m->body, "%%%d = chlo.erf %%%d : %s -> %s\n", y.id, x.id, pjrt_type_text(x.desc, type), type);
    return y;
}

static pjrt_value make_sign(pjrt_module *m, pjrt_value x)
{
    if (!stk_dtype_is_float(x.desc.dtype)) return pjrt_unary(m, "sign", x);
    /* XLA's keeps a NaN and the sign of zero. */
    pjrt_value zero = pjrt_constant(m, x.desc, 0), one = pjrt_constant(m, x.desc, 1),
               less = pjrt_constant(m, x.desc, -1);
    pjrt_value low = pjrt_select(m, pjrt_compare(m, "LT", x, zero), less, zero);
    return pjrt_select(m, pjrt_compare(m, "GT", x, zero), one, low);
}

stk_status pjrt_lower_unary(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    static const char *const names[STK_N_UNARY] = {
        [STK_UNARY_neg] = "negate",
        [STK_UNARY_abs] = "abs",
        [STK_UNARY_exp] = "exponential",
        [STK_UNARY_log] = "log",
        [STK_UNARY_log1p] = "log_plus_one",
        [STK_UNARY_expm1] = "exponential_minus_one",
        [STK_UNARY_sqrt] = "sqrt",
        [STK_UNARY_rsqrt] = "rsqrt",
        [STK_UNARY_tanh] = "tanh",
        [STK_UNARY_sigmoid] = "logistic",
        [STK_UNARY_sin] = "sine",
        [STK_UNARY_cos] = "cosine",
        [STK_UNARY_floor] = "floor",
        [STK_UNARY_ceil] = "ceil",
        [STK_UNARY_round] = "round_nearest_even",
    };
    (void)n_in;
    pjrt_value x = in[0];
    int kind = call->attrs->element.kind;
    switch (kind) {
    case STK_UNARY_reciprocal: out[0] = pjrt_binary(m, "divide", pjrt_constant(m, x.desc, 1), x); break;
    case STK_UNARY_square: out[0] = pjrt_binary(m, "multiply", x, x); break;
    case STK_UNARY_relu: out[0] = pjrt_binary(m, "maximum", x, pjrt_constant(m, x.desc, 0)); break;
    case STK_UNARY_sign: out[0] = make_sign(m, x); break;
    case STK_UNARY_erf: out[0] = make_erf(m, x); break;
    default:
        if (kind < 0 || kind >= STK_N_UNARY || !names[kind])
            return stk_fail(STK_UNSUPPORTED, "StableHLO has no '%s'", stk_unary_name(kind));
        out[0] = pjrt_unary(m, names[kind], x);
    }
    return STK_OK;
}

stk_status pjrt_lower_binary(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    static const char *const names[STK_N_BINARY] = {
        [STK_BINARY_add] = "add",    [STK_BINARY_sub] = "subtract", [STK_BINARY_mul] = "multiply",
        [STK_BINARY_div] = "divide", [STK_BINARY_max] = "maximum",  [STK_BINARY_min] = "minimum",
        [STK_BINARY_pow] = "power",
    };
    (void)n_in;
    out[0] = pjrt_binary(m, names[call->attrs->element.kind], in[0], in[1]);
    return STK_OK;
}

stk_status pjrt_lower_compare(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    static const char *const directions[STK_N_COMPARE] = {
        [STK_COMPARE_equal] = "EQ",      [STK_COMPARE_not_equal] = "NE", [STK_COMPARE_less] = "LT",
        [STK_COMPARE_less_equal] = "LE", [STK_COMPARE_greater] = "GT",   [STK_COMPARE_greater_equal] = "GE",
    };
    (void)n_in;
    out[0] = pjrt_compare(m, directions[call->attrs->element.kind], in[0], in[1]);
    return STK_OK;
}

stk_status pjrt_lower_select(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    (void)call;
    (void)n_in;
    out[0] = pjrt_select(m, in[0], in[1], in[2]);
    return STK_OK;
}

stk_status pjrt_lower_cast(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    (void)n_in;
    stk_dtype to = call->out[0].dtype;
    if (to == STK_BOOL && in[0].desc.dtype != STK_BOOL)
        out[0] = pjrt_compare(m, "NE", in[0], pjrt_constant(m, in[0].desc, 0));
    else
        out[0] = pjrt_convert(m, in[0], to);
    return STK_OK;
}

stk_status pjrt_lower_accumulate(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,
                                 pjrt_value *out)
{
    out[0] = in[0];
    if (n_in < 3 || call->attrs->accumulate.in_place) return STK_OK;
    static const int64_t no_axes[1];
    pjrt_value first = pjrt_compare(m, "EQ", in[1], pjrt_integer(m, in[1].desc, 0));
    if (in[0].desc.shape.rank) first = pjrt_broadcast(m, first, no_axes, in[0].desc.shape);
    out[0] = pjrt_select(m, first, in[0], pjrt_binary(m, "add", in[2], in[0]));
    return STK_OK;
}

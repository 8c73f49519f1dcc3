/* Element by element. */
#include <math.h>
#include <string.h>

#include "onnx/build_list.h"

/* The result of a function of input 0, in the input's layout. */
static stk_status map(stk_build *b, stk_value (*f)(stk_build *b, stk_value x))
{
    stk_onnx_value *v = stk_onnx_input_entry(b, 0);
    if (!v || !v->nhwc) return stk_onnx_output(b, 0, f(b, stk_onnx_input(b, 0)));
    return stk_onnx_output_nhwc(b, 0, f(b, v->value));
}

/* --- ops of one value that are one of ours --- */
#define PLAIN(Name, name)                                                                                              \
    static stk_value map_##name(stk_build *b, stk_value x)                                                             \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        return stk_##name(x);                                                                                          \
    }                                                                                                                  \
    stk_status stk_onnx_build_##Name(stk_build *b)                                                                     \
    {                                                                                                                  \
        return map(b, map_##name);                                                                                     \
    }
PLAIN(Neg, neg)
PLAIN(Abs, abs)
PLAIN(Exp, exp)
PLAIN(Log, log)
PLAIN(Sqrt, sqrt)
PLAIN(Reciprocal, reciprocal)
PLAIN(Tanh, tanh)
PLAIN(Sigmoid, sigmoid)
PLAIN(Relu, relu)
PLAIN(Erf, erf)
PLAIN(Sin, sin)
PLAIN(Cos, cos)
PLAIN(Floor, floor)
PLAIN(Ceil, ceil)
PLAIN(Round, round)

/* --- ops of one value that are several of ours --- */
#define MAPPED(Name, expression)                                                                                       \
    static stk_value map_##Name(stk_build *b, stk_value x)                                                             \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        return expression;                                                                                             \
    }                                                                                                                  \
    stk_status stk_onnx_build_##Name(stk_build *b)                                                                     \
    {                                                                                                                  \
        return map(b, map_##Name);                                                                                     \
    }

static stk_value clamp(stk_value x, double low, double high)
{
    return stk_min(stk_max(x, stk_onnx_like(x, low)), stk_onnx_like(x, high));
}

/* exp(min(x, 0)) - 1 on the left side, scaled; x on the right side, scaled. */
static stk_value elu(stk_value x, double left, double right)
{
    stk_value zero = stk_onnx_like(x, 0), below = stk_expm1(stk_min(x, zero));
    return stk_add(stk_scale_by(stk_max(x, zero), right), stk_scale_by(below, left));
}

/* log(1 + exp(x)), the exponent kept below 0. */
static stk_value softplus(stk_value x)
{
    return stk_add(stk_relu(x), stk_log1p(stk_exp(stk_neg(stk_abs(x)))));
}

/* x times the normal distribution up to x, or what is near it. */
static stk_value gelu(stk_value x, bool by_tanh)
{
    if (!by_tanh) return stk_mul(stk_scale_by(x, 0.5), stk_shift_by(stk_erf(stk_scale_by(x, sqrt(0.5))), 1));
    /* (1 + tanh(u)) / 2 is the sigmoid of 2 u, which loses nothing far below 0. */
    stk_value cube = stk_mul(stk_square(x), x), u = stk_add(x, stk_scale_by(cube, 0.044715));
    return stk_mul(x, stk_sigmoid(stk_scale_by(u, 2 * sqrt(2 / acos(-1.0)))));
}

/* Of e = exp(|x|) - 1, with the sign of x. Half of e + e / (e + 1), where nothing cancels near 0; from 30 on exp(|x| -
 * log 2), which overflows no earlier than the result. */
static stk_value sinh_of(stk_value x)
{
    stk_value size = stk_abs(x), e = stk_expm1(size), near = stk_add(e, stk_div(e, stk_shift_by(e, 1)));
    stk_value far = stk_exp(stk_shift_by(size, -0.69314718055994530942));
    stk_value y = stk_select(stk_greater(size, stk_onnx_like(x, 30)), far, stk_scale_by(near, 0.5));
    return stk_select(stk_equal(x, stk_onnx_like(x, 0)), x, stk_mul(stk_sign(x), y));
}

static stk_value cosh_of(stk_value x)
{
    stk_value half = stk_exp(stk_shift_by(stk_abs(x), -0.69314718055994530942));
    return stk_add(half, stk_scale_by(stk_reciprocal(half), 0.25));
}

/* log(|x| + sqrt(x^2 + 1)) with the sign of x; where squares might overflow, log(2 |x|). */
static stk_value asinh_of(stk_value x)
{
    stk_value size = stk_abs(x), square = stk_square(x), root = stk_sqrt(stk_shift_by(square, 1));
    stk_value near = stk_log1p(stk_add(size, stk_div(square, stk_shift_by(root, 1))));
    stk_value far = stk_shift_by(stk_log(size), 0.69314718055994530942);
    stk_value y = stk_select(stk_greater(size, stk_onnx_like(x, 1e9)), far, near);
    return stk_select(stk_equal(x, stk_onnx_like(x, 0)), x, stk_mul(stk_sign(x), y));
}

/* log(x + sqrt(x^2 - 1)), of t = x - 1; below 1 there is none. */
static stk_value acosh_of(stk_value x)
{
    stk_value none = stk_onnx_like(x, NAN);
    stk_value t = stk_shift_by(x, -1), root = stk_sqrt(stk_mul(t, stk_shift_by(t, 2)));
    stk_value far = stk_shift_by(stk_log(x), 0.69314718055994530942);
    stk_value y = stk_select(stk_greater(x, stk_onnx_like(x, 1e9)), far, stk_log1p(stk_add(t, root)));
    return stk_select(stk_less(x, stk_onnx_like(x, 1)), none, y);
}

/* Half of log((1 + |x|) / (1 - |x|)), with the sign of x. */
static stk_value atanh_of(stk_value x)
{
    stk_value size = stk_abs(x), twice = stk_div(stk_scale_by(size, 2), stk_shift_by(stk_neg(size), 1));
    stk_value y = stk_scale_by(stk_log1p(twice), 0.5);
    return stk_select(stk_equal(x, stk_onnx_like(x, 0)), x, stk_mul(stk_sign(x), y));
}

static stk_value thresholded(stk_value x, double alpha)
{
    return stk_select(stk_greater(x, stk_onnx_like(x, alpha)), x, stk_onnx_like(x, 0));
}

static stk_value shrink(stk_value x, double lambda, double bias)
{
    stk_value zero = stk_onnx_like(x, 0);
    stk_value above = stk_select(stk_greater(x, stk_onnx_like(x, lambda)), stk_shift_by(x, -bias), zero);
    return stk_select(stk_less(x, stk_onnx_like(x, -lambda)), stk_shift_by(x, bias), above);
}

static stk_value hard_sigmoid(stk_value x, double slope, double shift)
{
    return clamp(stk_shift_by(stk_scale_by(x, slope), shift), 0, 1);
}

#define ATTRIBUTE(name, default_value) stk_onnx_attribute_float(b, name, default_value)
MAPPED(Softplus, softplus(x))
MAPPED(Softsign, stk_div(x, stk_shift_by(stk_abs(x), 1)))
MAPPED(Elu, elu(x, ATTRIBUTE("alpha", 1), 1))
MAPPED(Selu, elu(x, ATTRIBUTE("alpha", 1.67326319217681884765625) * ATTRIBUTE("gamma", 1.05070102214813232421875),
                 ATTRIBUTE("gamma", 1.05070102214813232421875)))
MAPPED(LeakyRelu, stk_select(stk_less(x, stk_onnx_like(x, 0)), stk_scale_by(x, ATTRIBUTE("alpha", 0.01)), x))
MAPPED(HardSigmoid, hard_sigmoid(x, ATTRIBUTE("alpha", 0.2), ATTRIBUTE("beta", 0.5)))
MAPPED(HardSwish, stk_mul(x, hard_sigmoid(x, 1.0 / 6, 0.5)))
MAPPED(Gelu, gelu(x, stk_onnx_attribute_is(b, "approximate", "tanh")))
MAPPED(Mish, stk_mul(x, stk_tanh(softplus(x))))
MAPPED(ThresholdedRelu, thresholded(x, ATTRIBUTE("alpha", 1)))
MAPPED(Shrink, shrink(x, ATTRIBUTE("lambd", 0.5), ATTRIBUTE("bias", 0)))
MAPPED(Sinh, sinh_of(x))
MAPPED(Cosh, cosh_of(x))
MAPPED(Tan, stk_div(stk_sin(x), stk_cos(x)))
MAPPED(Asinh, asinh_of(x))
MAPPED(Acosh, acosh_of(x))
MAPPED(Atanh, atanh_of(x))
MAPPED(Sign, stk_select(stk_not_equal(x, x), x, stk_sign(x))) /* NaN stays */
MAPPED(IsNaN, stk_not_equal(x, x))
MAPPED(Not, stk_equal(x, stk_onnx_like(x, 0)))
MAPPED(Identity, x)

static stk_value celu(stk_value x, double alpha)
{
    stk_value zero = stk_onnx_like(x, 0), below = stk_expm1(stk_scale_by(stk_min(x, zero), 1 / alpha));
    return stk_add(stk_max(x, zero), stk_scale_by(below, alpha));
}
MAPPED(Celu, celu(x, ATTRIBUTE("alpha", 1)))

static stk_value is_infinite(stk_value x, bool positive, bool negative)
{
    stk_value none = stk_less(x, x), plus = none, minus = none;
    if (positive) plus = stk_equal(x, stk_onnx_like(x, INFINITY));
    if (negative) minus = stk_equal(x, stk_onnx_like(x, -INFINITY));
    return stk_not_equal(plus, minus);
}
MAPPED(IsInf,
       is_infinite(x, stk_onnx_attribute_int(b, "detect_positive", 1), stk_onnx_attribute_int(b, "detect_negative", 1)))

stk_status stk_onnx_build_Cast(stk_build *b)
{
    stk_dtype dtype;
    STK_RETURN_IF_ERROR(stk_onnx_dtype((int32_t)stk_onnx_attribute_int(b, "to", 0), &dtype));
    return stk_onnx_output(b, 0, stk_cast_to(stk_onnx_input(b, 0), dtype));
}

stk_status stk_onnx_build_CastLike(stk_build *b)
{
    return stk_onnx_output(b, 0, stk_cast_to(stk_onnx_input(b, 0), stk_value_dtype(stk_onnx_input(b, 1))));
}

stk_status stk_onnx_build_Clip(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    if (b->opset < 11) {
        if (stk_onnx_attribute(b, "min")) x = stk_max(x, stk_onnx_like(x, ATTRIBUTE("min", 0)));
        if (stk_onnx_attribute(b, "max")) x = stk_min(x, stk_onnx_like(x, ATTRIBUTE("max", 0)));
        return stk_onnx_output(b, 0, x);
    }
    if (stk_onnx_has_input(b, 1)) x = stk_max(x, stk_onnx_input(b, 1));
    if (stk_onnx_has_input(b, 2)) x = stk_min(x, stk_onnx_input(b, 2));
    return stk_onnx_output(b, 0, x);
}

/* --- of two values --- */

/* Of two values in the same layout, else in the model's. */
static stk_status combine(stk_build *b, stk_value (*f)(stk_value x, stk_value y))
{
    stk_onnx_value *x = stk_onnx_input_entry(b, 0), *y = stk_onnx_input_entry(b, 1);
    if (x && y && x->nhwc && y->nhwc) return stk_onnx_output_nhwc(b, 0, f(x->value, y->value));
    stk_value first = stk_onnx_input(b, 0);
    return stk_onnx_output(b, 0, f(first, stk_onnx_input(b, 1)));
}

static stk_value divide_rounded(stk_value x, stk_value y)
{
    return stk_cast_to(stk_div(stk_cast_to(x, STK_F64), stk_cast_to(y, STK_F64)), stk_value_dtype(x));
}

/* Integers are divided as doubles and cut. Of 64 bits a double does not hold all: what is left is divided again, and a
 * unit too many is taken back where the rest has not the sign of x. */
static stk_value divide(stk_value x, stk_value y)
{
    stk_dtype dtype = stk_value_dtype(x);
    if (stk_dtype_is_float(dtype)) return stk_div(x, y);
    if (dtype != STK_I64) return divide_rounded(x, y);
    stk_value zero = stk_onnx_like(x, 0), rest = x, q = zero;
    for (int pass = 0; pass < 3; pass++) {
        stk_value more = divide_rounded(rest, y);
        q = pass ? stk_add(q, more) : more;
        rest = stk_sub(rest, stk_mul(more, y));
    }
    stk_value below = stk_less(rest, zero), off = stk_not_equal(below, stk_less(x, zero));
    off = stk_select(stk_equal(rest, zero), stk_not_equal(x, x), off);
    stk_value unit = stk_select(stk_not_equal(below, stk_less(y, zero)), stk_onnx_like(x, 1), stk_onnx_like(x, -1));
    return stk_sub(q, stk_select(off, unit, zero));
}

static stk_value power(stk_value x, stk_value y)
{
    stk_dtype dtype = stk_value_dtype(x);
    if (stk_dtype_is_float(dtype)) return stk_pow(x, stk_cast_to(y, dtype));
    return stk_cast_to(stk_pow(stk_cast_to(x, STK_F64), stk_cast_to(y, STK_F64)), dtype);
}

static stk_value both(stk_value x, stk_value y)
{
    return stk_select(x, y, stk_onnx_like(y, 0));
}

static stk_value either(stk_value x, stk_value y)
{
    return stk_select(x, stk_onnx_like(y, 1), y);
}

static stk_value prelu(stk_value x, stk_value slope)
{
    return stk_select(stk_less(x, stk_onnx_like(x, 0)), stk_mul(x, slope), x);
}

#define COMBINED(Name, f)                                                                                              \
    stk_status stk_onnx_build_##Name(stk_build *b)                                                                     \
    {                                                                                                                  \
        return combine(b, f);                                                                                          \
    }
COMBINED(Add, stk_add)
COMBINED(Sub, stk_sub)
COMBINED(Mul, stk_mul)
COMBINED(Div, divide)

/* Whole numbers to a power that is known are products, exact up to the dtype's width. */
stk_status stk_onnx_build_Pow(stk_build *b)
{
    const stk_onnx_tensor *t = NULL;
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_onnx_value *power_entry = stk_onnx_input_entry(b, 1);
    if (!stk_dtype_is_float(stk_value_dtype(x)) && power_entry && (t = power_entry->tensor) &&
        stk_shape_count(t->shape) == 1 && stk_value_shape(x).rank >= t->shape.rank) {
        double p = stk_onnx_number(t, 0);
        stk_value y = stk_onnx_like(x, 1);
        if (p >= 1 && p < 64 && p == floor(p)) {
            for (int bit = 32; bit; bit /= 2) {
                y = stk_mul(y, y);
                if ((int)p & bit) y = stk_mul(y, x);
            }
            return stk_onnx_output(b, 0, y);
        }
    }
    return combine(b, power);
}

COMBINED(Equal, stk_equal)
COMBINED(Less, stk_less)
COMBINED(LessOrEqual, stk_less_equal)
COMBINED(Greater, stk_greater)
COMBINED(GreaterOrEqual, stk_greater_equal)
COMBINED(And, both)
COMBINED(Or, either)
COMBINED(Xor, stk_not_equal)
COMBINED(PRelu, prelu)

/* The rest of integers, of the sign of x if `cut`, else of y. A quotient of doubles is off by 2^11 at most, and what
 * then is left is divided again; sums and products wrap, so that the rest is exact.
 */
static stk_value integer_rest(stk_value x, stk_value y, bool cut)
{
    stk_value rest = x, zero = stk_onnx_like(x, 0), wide = stk_cast_to(y, STK_F64);
    for (int i = 0; i < 2; i++) {
        stk_value share = stk_floor(stk_div(stk_cast_to(rest, STK_F64), wide));
        rest = stk_sub(rest, stk_mul(y, stk_cast_to(share, STK_I64)));
    }
    if (!cut) return rest;
    stk_value differs = stk_less(stk_mul(stk_sign(rest), stk_sign(x)), zero);
    return stk_select(differs, stk_sub(rest, y), rest);
}

/* C's fmod, exactly, and with the sign of y where not `cut`: x and y are f32 or less in f64. A step takes 28 bits of
 * the quotient, so that its product with y's 24 bits is exact; 10 steps take all quotients of two numbers of f32.
 */
static stk_value float_rest(stk_value x, stk_value y, bool cut)
{
    enum { BITS = 28, N_STEPS = 10 };
    stk_value rest = stk_abs(x), size = stk_abs(y);
    for (int i = N_STEPS - 1; i >= 0; i--) {
        stk_value part = stk_scale_by(size, ldexp(1, BITS * i));
        rest = stk_sub(rest, stk_mul(part, stk_floor(stk_div(rest, part))));
        /* The quotient may have been rounded up to the next integer. */
        rest = stk_select(stk_less(rest, stk_onnx_like(rest, 0)), stk_add(rest, part), rest);
    }
    rest = stk_select(stk_less(x, stk_onnx_like(x, 0)), stk_neg(rest), rest);
    /* Nothing is taken from what is divided by infinity, and infinity has no rest. */
    stk_value endless = stk_onnx_like(x, INFINITY), other = stk_select(stk_less(stk_abs(x), endless), x, stk_sub(x, x));
    rest = stk_select(stk_equal(size, endless), other, rest);
    if (cut) return rest;
    stk_value differs = stk_less(stk_mul(stk_sign(rest), stk_sign(y)), stk_onnx_like(x, 0));
    return stk_select(differs, stk_add(rest, y), rest);
}

stk_status stk_onnx_build_Mod(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), y = stk_onnx_input(b, 1);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_dtype dtype = stk_value_dtype(x);
    bool cut = stk_onnx_attribute_int(b, "fmod", 0);
    if (!stk_dtype_is_float(dtype))
        return stk_onnx_output(b, 0,
                               stk_cast_to(integer_rest(stk_cast_to(x, STK_I64), stk_cast_to(y, STK_I64), cut), dtype));
    if (!cut && b->opset < 28)
        return stk_fail(STK_INVALID, "its attribute 'fmod' is 0, and must be 1 for floats before opset 28");
    if (dtype == STK_F64) return stk_fail(STK_UNSUPPORTED, "its input is f64, whose rest is not exact here");
    return stk_onnx_output(b, 0, stk_cast_to(float_rest(stk_cast_to(x, STK_F64), stk_cast_to(y, STK_F64), cut), dtype));
}

stk_status stk_onnx_build_Where(stk_build *b)
{
    stk_value c = stk_onnx_input(b, 0), x = stk_onnx_input(b, 1);
    return stk_onnx_output(b, 0, stk_select(c, x, stk_onnx_input(b, 2)));
}

/* --- of any number of values --- */

static stk_status fold(stk_build *b, stk_value (*f)(stk_value x, stk_value y), bool mean)
{
    stk_value x = stk_onnx_input(b, 0);
    for (int i = 1; i < stk_onnx_n_inputs(b); i++)
        x = f(x, stk_onnx_input(b, i));
    return stk_onnx_output(b, 0, mean ? stk_scale_by(x, 1.0 / stk_onnx_n_inputs(b)) : x);
}

stk_status stk_onnx_build_Max(stk_build *b)
{
    return fold(b, stk_max, false);
}

stk_status stk_onnx_build_Min(stk_build *b)
{
    return fold(b, stk_min, false);
}

stk_status stk_onnx_build_Sum(stk_build *b)
{
    return fold(b, stk_add, false);
}

stk_status stk_onnx_build_Mean(stk_build *b)
{
    return fold(b, stk_add, true);
}

#include "device/reference/element.h"

#include <math.h>
#include <string.h>

/* --- 16-bit floats --- */

static double f16_to_double(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, -24);
    return sign * ldexp(1024 + mantissa, exponent - 25);
}

static uint16_t f16_from_double(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double size = fabs(x);
    int exponent;
    if (isnan(x)) return 0x7e00;
    if (size >= 65520) return (uint16_t)(sign | 0x7c00);
    /* Below the normal numbers the step is 2^-24 everywhere. A carry runs into the exponent by itself. */
    if (size < 0x1p-14) return (uint16_t)(sign | (uint16_t)rint(ldexp(size, 24)));
    frexp(size, &exponent); /* size = m * 2^exponent, m in [0.5, 1) */
    int mantissa = (int)rint(ldexp(size, 11 - exponent));
    return (uint16_t)(sign | (((exponent + 14) << 10) + mantissa - 1024));
}

static double bf16_to_double(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, 4);
    return (double)x;
}

static uint16_t bf16_from_double(double x)
{
    float narrow = (float)x;
    uint32_t bits;
    if (isnan(narrow)) return signbit(narrow) ? 0xffc0 : 0x7fc0;
    memcpy(&bits, &narrow, 4);
    /* To nearest, ties to the even upper half. */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* --- memory --- */

stk_ref_number stk_ref_get(stk_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case STK_F32: return (stk_ref_number){.f = ((const float *)data)[i]};
    case STK_F64: return (stk_ref_number){.f = ((const double *)data)[i]};
    case STK_BF16: return (stk_ref_number){.f = bf16_to_double(((const uint16_t *)data)[i])};
    case STK_F16: return (stk_ref_number){.f = f16_to_double(((const uint16_t *)data)[i])};
    case STK_I64: return (stk_ref_number){.i = ((const int64_t *)data)[i]};
    case STK_I32: return (stk_ref_number){.i = ((const int32_t *)data)[i]};
    case STK_I8: return (stk_ref_number){.i = ((const int8_t *)data)[i]};
    case STK_U8: return (stk_ref_number){.i = ((const uint8_t *)data)[i]};
    case STK_BOOL: return (stk_ref_number){.i = ((const uint8_t *)data)[i] != 0};
    default: return (stk_ref_number){.i = 0};
    }
}

void stk_ref_put(stk_dtype dtype, void *data, int64_t i, stk_ref_number x)
{
    switch (dtype) {
    case STK_F32: ((float *)data)[i] = (float)x.f; break;
    case STK_F64: ((double *)data)[i] = x.f; break;
    case STK_BF16: ((uint16_t *)data)[i] = bf16_from_double(x.f); break;
    case STK_F16: ((uint16_t *)data)[i] = f16_from_double(x.f); break;
    case STK_I64: ((int64_t *)data)[i] = x.i; break;
    case STK_I32: ((int32_t *)data)[i] = (int32_t)x.i; break;
    case STK_I8: ((int8_t *)data)[i] = (int8_t)x.i; break;
    case STK_U8: ((uint8_t *)data)[i] = (uint8_t)x.i; break;
    case STK_BOOL: ((uint8_t *)data)[i] = x.i != 0; break;
    default: break;
    }
}

stk_ref_number stk_ref_round(stk_dtype dtype, stk_ref_number x)
{
    uint64_t memory = 0;
    stk_ref_put(dtype, &memory, 0, x);
    return stk_ref_get(dtype, &memory, 0);
}

double stk_ref_load(stk_dtype dtype, const void *data, int64_t i)
{
    stk_ref_number x = stk_ref_get(dtype, data, i);
    return stk_dtype_is_float(dtype) ? x.f : (double)x.i;
}

void stk_ref_store(stk_dtype dtype, void *data, int64_t i, double x)
{
    stk_ref_put(dtype, data, i, stk_ref_from_double(dtype, x));
}

/* --- arithmetic --- */

static double unary_float(int kind, double x)
{
    switch ((stk_unary_kind)kind) {
    case STK_UNARY_neg: return -x;
    case STK_UNARY_abs: return fabs(x);
    case STK_UNARY_exp: return exp(x);
    case STK_UNARY_log: return log(x);
    case STK_UNARY_sqrt: return sqrt(x);
    case STK_UNARY_rsqrt: return 1 / sqrt(x);
    case STK_UNARY_reciprocal: return 1 / x;
    case STK_UNARY_square: return x * x;
    case STK_UNARY_tanh: return tanh(x);
    case STK_UNARY_sigmoid: return (x < 0 ? exp(x) : 1) / (1 + exp(-fabs(x)));
    case STK_UNARY_relu: return x > 0 || isnan(x) ? x : 0;
    case STK_UNARY_sign: return (double)((x > 0) - (x < 0));
    case STK_UNARY_erf: return erf(x);
    case STK_UNARY_sin: return sin(x);
    case STK_UNARY_cos: return cos(x);
    case STK_UNARY_floor: return floor(x);
    case STK_UNARY_ceil: return ceil(x);
    case STK_UNARY_round: return nearbyint(x);
    case STK_UNARY_log1p: return log1p(x);
    case STK_UNARY_expm1: return expm1(x);
    default: return NAN;
    }
}

/* In unsigned arithmetic, which wraps; the dtype's own width wraps when the result is put. */
static int64_t unary_integer(int kind, int64_t x)
{
    switch ((stk_unary_kind)kind) {
    case STK_UNARY_neg: return (int64_t)(0 - (uint64_t)x);
    case STK_UNARY_abs: return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case STK_UNARY_square: return (int64_t)((uint64_t)x * (uint64_t)x);
    case STK_UNARY_sign: return (x > 0) - (x < 0);
    case STK_UNARY_relu: return x > 0 ? x : 0;
    default: return 0;
    }
}

stk_ref_number stk_ref_unary(int kind, stk_dtype dtype, stk_ref_number x)
{
    if (stk_dtype_is_float(dtype)) return (stk_ref_number){.f = unary_float(kind, x.f)};
    return (stk_ref_number){.i = unary_integer(kind, x.i)};
}

static double binary_float(int kind, double a, double b)
{
    switch ((stk_binary_kind)kind) {
    case STK_BINARY_add: return a + b;
    case STK_BINARY_sub: return a - b;
    case STK_BINARY_mul: return a * b;
    case STK_BINARY_div: return a / b;
    case STK_BINARY_max: return isnan(a) || a > b ? a : b;
    case STK_BINARY_min: return isnan(a) || a < b ? a : b;
    case STK_BINARY_pow: return pow(a, b);
    default: return NAN;
    }
}

static int64_t binary_integer(int kind, int64_t a, int64_t b)
{
    switch ((stk_binary_kind)kind) {
    case STK_BINARY_add: return (int64_t)((uint64_t)a + (uint64_t)b);
    case STK_BINARY_sub: return (int64_t)((uint64_t)a - (uint64_t)b);
    case STK_BINARY_mul: return (int64_t)((uint64_t)a * (uint64_t)b);
    case STK_BINARY_max: return a > b ? a : b;
    case STK_BINARY_min: return a < b ? a : b;
    default: return 0;
    }
}

stk_ref_number stk_ref_binary(int kind, stk_dtype dtype, stk_ref_number a, stk_ref_number b)
{
    if (stk_dtype_is_float(dtype)) return (stk_ref_number){.f = binary_float(kind, a.f, b.f)};
    return (stk_ref_number){.i = binary_integer(kind, a.i, b.i)};
}

bool stk_ref_compare(int kind, stk_dtype dtype, stk_ref_number a, stk_ref_number b)
{
    bool is_float = stk_dtype_is_float(dtype);
    bool less = is_float ? a.f < b.f : a.i < b.i;
    bool equal = is_float ? a.f == b.f : a.i == b.i;
    bool greater = is_float ? a.f > b.f : a.i > b.i;
    switch ((stk_compare_kind)kind) {
    case STK_COMPARE_equal: return equal;
    case STK_COMPARE_not_equal: return !equal;
    case STK_COMPARE_less: return less;
    case STK_COMPARE_less_equal: return less || equal;
    case STK_COMPARE_greater: return greater;
    case STK_COMPARE_greater_equal: return greater || equal;
    default: return false;
    }
}

static int64_t clamp_to_integer(double x, double lowest, double highest)
{
    if (isnan(x)) return 0;
    if (x <= lowest) return lowest <= -0x1p63 ? INT64_MIN : (int64_t)lowest;
    if (x >= highest) return highest >= 0x1p63 ? INT64_MAX : (int64_t)highest;
    return (int64_t)x;
}

stk_ref_number stk_ref_from_double(stk_dtype dtype, double x)
{
    switch (dtype) {
    case STK_I64: return (stk_ref_number){.i = clamp_to_integer(x, -0x1p63, 0x1p63)};
    case STK_I32: return (stk_ref_number){.i = clamp_to_integer(x, INT32_MIN, INT32_MAX)};
    case STK_I8: return (stk_ref_number){.i = clamp_to_integer(x, INT8_MIN, INT8_MAX)};
    case STK_U8: return (stk_ref_number){.i = clamp_to_integer(x, 0, UINT8_MAX)};
    case STK_BOOL: return (stk_ref_number){.i = x != 0};
    default: return (stk_ref_number){.f = x};
    }
}

stk_ref_number stk_ref_cast(stk_dtype to, stk_dtype from, stk_ref_number x)
{
    if (stk_dtype_is_float(from)) return stk_ref_from_double(to, x.f);
    if (stk_dtype_is_float(to)) return (stk_ref_number){.f = (double)x.i};
    if (to == STK_BOOL) return (stk_ref_number){.i = x.i != 0};
    return x; /* Wraps when it is put. */
}

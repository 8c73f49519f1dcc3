/* The loops of element.h. One macro makes a loop; the lists below say which ops exist for which dtype. */
#include <math.h>

#include "device/cpu/element.h"
#include "device/cpu/element_draw.h"
#include "device/cpu/element_math.h"

#define LOOP _Pragma("omp simd") for (int64_t i = 0; i < n; i++)

#define UNARY(name, suffix, T, expression)                                                                             \
    static void loop_##name##_##suffix(int64_t n, void *dst, const void *const *src)                                   \
    {                                                                                                                  \
        T *y = dst;                                                                                                    \
        const T *x = src[0];                                                                                           \
        LOOP                                                                                                           \
        {                                                                                                              \
            T a = x[i];                                                                                                \
            y[i] = (T)(expression);                                                                                    \
        }                                                                                                              \
    }

#define BINARY(name, suffix, T, D, expression)                                                                         \
    static void loop_##name##_##suffix(int64_t n, void *dst, const void *const *src)                                   \
    {                                                                                                                  \
        D *y = dst;                                                                                                    \
        const T *p = src[0], *q = src[1];                                                                              \
        LOOP                                                                                                           \
        {                                                                                                              \
            T a = p[i], b = q[i];                                                                                      \
            y[i] = (D)(expression);                                                                                    \
        }                                                                                                              \
    }

/* --- unary --- */

/* A NaN of relu stays one. */
#define FLOAT_UNARY(suffix, T, fabs_, sqrt_, floor_, ceil_, round_)                                                    \
    UNARY(neg, suffix, T, -a)                                                                                          \
    UNARY(abs, suffix, T, fabs_(a))                                                                                    \
    UNARY(sqrt, suffix, T, sqrt_(a))                                                                                   \
    UNARY(rsqrt, suffix, T, 1 / sqrt_(a))                                                                              \
    UNARY(reciprocal, suffix, T, 1 / a)                                                                                \
    UNARY(square, suffix, T, a *a)                                                                                     \
    UNARY(relu, suffix, T, a <= 0 ? 0 : a)                                                                             \
    UNARY(sign, suffix, T, (T)(a > 0 ? 1 : 0) - (T)(a < 0 ? 1 : 0))                                                    \
    UNARY(floor, suffix, T, floor_(a))                                                                                 \
    UNARY(ceil, suffix, T, ceil_(a))                                                                                   \
    UNARY(round, suffix, T, round_(a))

FLOAT_UNARY(f32, float, fabsf, sqrtf, floorf, ceilf, nearbyintf)
FLOAT_UNARY(f64, double, fabs, sqrt, floor, ceil, nearbyint)

UNARY(exp, f32, float, exp_f32(a))
UNARY(log, f32, float, log_f32(a))
UNARY(tanh, f32, float, tanh_f32(a))
UNARY(sigmoid, f32, float, sigmoid_f32(a))
UNARY(erf, f32, float, erf_f32(a))

UNARY(exp, f64, double, exp(a))
UNARY(log, f64, double, log(a))
UNARY(tanh, f64, double, tanh(a))
UNARY(sigmoid, f64, double, 1 / (1 + exp(-a)))
UNARY(erf, f64, double, erf(a))
UNARY(sin, f64, double, sin(a))
UNARY(cos, f64, double, cos(a))

#define TRIG(name, libm, quarter)                                                                                      \
    static void loop_##name##_f32(int64_t n, void *dst, const void *const *src)                                        \
    {                                                                                                                  \
        float *y = dst, most = 0;                                                                                      \
        const float *x = src[0];                                                                                       \
        int n_odd = 0;                                                                                                 \
        _Pragma("omp simd reduction(max:most) reduction(+:n_odd)") for (int64_t i = 0; i < n; i++)                     \
        {                                                                                                              \
            float size = fabsf(x[i]);                                                                                  \
            most = size > most ? size : most;                                                                          \
            n_odd += size <= TRIG_LIMIT ? 0 : 1;                                                                       \
        }                                                                                                              \
        if (n_odd) {                                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                                            \
                y[i] = libm(x[i]);                                                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        LOOP y[i] = trig_f32(x[i], quarter);                                                                           \
    }

TRIG(sin, sinf, 0)
TRIG(cos, cosf, 1)

/* In the unsigned type, which wraps. */
#define INTEGER_UNARY(suffix, T, U)                                                                                    \
    UNARY(neg, suffix, T, 0 - (U)a)                                                                                    \
    UNARY(abs, suffix, T, a < 0 ? 0 - (U)a : (U)a)                                                                     \
    UNARY(square, suffix, T, (U)a *(U)a)                                                                               \
    UNARY(sign, suffix, T, (a > 0) - (a < 0))                                                                          \
    UNARY(relu, suffix, T, a > 0 ? a : 0)

INTEGER_UNARY(i64, int64_t, uint64_t)
INTEGER_UNARY(i32, int32_t, uint32_t)
INTEGER_UNARY(i8, int8_t, uint8_t)

/* --- binary --- */

/* max and min keep a NaN of either side. */
#define FLOAT_BINARY(suffix, T, pow_)                                                                                  \
    BINARY(add, suffix, T, T, a + b)                                                                                   \
    BINARY(sub, suffix, T, T, a - b)                                                                                   \
    BINARY(mul, suffix, T, T, a *b)                                                                                    \
    BINARY(div, suffix, T, T, a / b)                                                                                   \
    BINARY(max, suffix, T, T, ((a > b) | (a != a)) ? a : b)                                                            \
    BINARY(min, suffix, T, T, ((a < b) | (a != a)) ? a : b)                                                            \
    BINARY(pow, suffix, T, T, pow_(a, b))

FLOAT_BINARY(f32, float, powf)
FLOAT_BINARY(f64, double, pow)

#define INTEGER_BINARY(suffix, T, U)                                                                                   \
    BINARY(add, suffix, T, T, (U)a + (U)b)                                                                             \
    BINARY(sub, suffix, T, T, (U)a - (U)b)                                                                             \
    BINARY(mul, suffix, T, T, (U)a *(U)b)                                                                              \
    BINARY(max, suffix, T, T, a > b ? a : b)                                                                           \
    BINARY(min, suffix, T, T, a < b ? a : b)

INTEGER_BINARY(i64, int64_t, uint64_t)
INTEGER_BINARY(i32, int32_t, uint32_t)
INTEGER_BINARY(i8, int8_t, uint8_t)
INTEGER_BINARY(u8, uint8_t, uint8_t)

/* --- compare and select --- */

#define COMPARE(suffix, T)                                                                                             \
    BINARY(equal, suffix, T, uint8_t, a == b)                                                                          \
    BINARY(not_equal, suffix, T, uint8_t, a != b)                                                                      \
    BINARY(less, suffix, T, uint8_t, a < b)                                                                            \
    BINARY(less_equal, suffix, T, uint8_t, a <= b)                                                                     \
    BINARY(greater, suffix, T, uint8_t, a > b)                                                                         \
    BINARY(greater_equal, suffix, T, uint8_t, a >= b)

COMPARE(f32, float)
COMPARE(f64, double)
COMPARE(i64, int64_t)
COMPARE(i32, int32_t)
COMPARE(i8, int8_t)
COMPARE(u8, uint8_t)

#define SELECT(T)                                                                                                      \
    static void select_##T(int64_t n, void *dst, const void *const *src)                                               \
    {                                                                                                                  \
        T *y = dst;                                                                                                    \
        const uint8_t *condition = src[0];                                                                             \
        const T *p = src[1], *q = src[2];                                                                              \
        LOOP                                                                                                           \
        {                                                                                                              \
            T a = p[i], b = q[i];                                                                                      \
            y[i] = condition[i] ? a : b;                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void gather_##T(int64_t n, void *dst, const void *src, int64_t stride)                                      \
    {                                                                                                                  \
        T *y = dst;                                                                                                    \
        const T *x = src;                                                                                              \
        if (stride) {                                                                                                  \
            LOOP y[i] = x[i * stride];                                                                                 \
            return;                                                                                                    \
        }                                                                                                              \
        T a = *x;                                                                                                      \
        LOOP y[i] = a;                                                                                                 \
    }

SELECT(uint8_t)
SELECT(uint16_t)
SELECT(uint32_t)
SELECT(uint64_t)

/* --- cast --- */

#define CAST(from, to, S, D, expression)                                                                               \
    static void cast_##from##_to_##to(int64_t n, void *dst, const void *const *src)                                    \
    {                                                                                                                  \
        D *y = dst;                                                                                                    \
        const S *x = src[0];                                                                                           \
        LOOP                                                                                                           \
        {                                                                                                              \
            S a = x[i];                                                                                                \
            y[i] = (D)(expression);                                                                                    \
        }                                                                                                              \
    }

/* Held at the ends, NaN as 0. `end` is the first number above the range. */
#define HOLD(D, low, end, least, most) (a != a ? 0 : a <= (low) ? (least) : a >= (end) ? (most) : (D)a)

#define CAST_FLOAT(from, S)                                                                                            \
    CAST(from, i64, S, int64_t, HOLD(int64_t, (S)-0x1p63, (S)0x1p63, INT64_MIN, INT64_MAX))                            \
    CAST(from, i32, S, int32_t, HOLD(int32_t, (S)-0x1p31, (S)0x1p31, INT32_MIN, INT32_MAX))                            \
    CAST(from, i8, S, int8_t, HOLD(int32_t, -128, 127, INT8_MIN, INT8_MAX))                                            \
    CAST(from, u8, S, uint8_t, HOLD(int32_t, 0, 255, 0, UINT8_MAX))                                                    \
    CAST(from, bool, S, uint8_t, a != 0)

#define CAST_INTEGER(from, S)                                                                                          \
    CAST(from, f32, S, float, a)                                                                                       \
    CAST(from, f64, S, double, a)                                                                                      \
    CAST(from, i64, S, int64_t, a)                                                                                     \
    CAST(from, i32, S, int32_t, a)                                                                                     \
    CAST(from, i8, S, int8_t, a)                                                                                       \
    CAST(from, u8, S, uint8_t, a)                                                                                      \
    CAST(from, bool, S, uint8_t, a != 0)

CAST_FLOAT(f32, float)
CAST_FLOAT(f64, double)
CAST(f32, f64, float, double, a)
CAST(f64, f32, double, float, a)
CAST(f32, f32, float, float, a)
CAST(f64, f64, double, double, a)
CAST(f32, bf16, float, uint16_t, bf16_from_f32(a))
CAST(bf16, f32, uint16_t, float, bf16_to_f32(a))
CAST(f32, f16, float, uint16_t, f16_from_f32(a))
CAST(f16, f32, uint16_t, float, f16_to_f32(a))
CAST_INTEGER(i64, int64_t)
CAST_INTEGER(i32, int32_t)
CAST_INTEGER(i8, int8_t)
CAST_INTEGER(u8, uint8_t)

/* --- dropout --- */

#define DROPOUT(suffix, T)                                                                                             \
    static void dropout_##suffix(const stk_dropout_args *args, int64_t first, int64_t n, void *dst, const void *src)   \
    {                                                                                                                  \
        T *y = dst;                                                                                                    \
        const T *x = src;                                                                                              \
        int32_t drawn[PIECE], limit = stk_dropout_limit(args->rate);                                                   \
        T scale = (T)(1 / (1 - args->rate));                                                                           \
        for (int64_t at = 0; at < n; at += PIECE) {                                                                    \
            int n_here = n - at < PIECE ? (int)(n - at) : PIECE;                                                       \
            draw(args, first + at, n_here, drawn);                                                                     \
            _Pragma("omp simd") for (int i = 0; i < n_here; i++)                                                       \
            {                                                                                                          \
                T kept = x[at + i] * scale;                                                                            \
                y[at + i] = drawn[i] >= limit ? kept : 0;                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }

DROPOUT(f32, float)
DROPOUT(f64, double)

/* --- the table --- */

#define ROW_INTEGER(name) [STK_I64] = loop_##name##_i64, [STK_I32] = loop_##name##_i32, [STK_I8] = loop_##name##_i8
#define ROW_FLOAT(name)   [STK_F32] = loop_##name##_f32, [STK_F64] = loop_##name##_f64
#define ROW_ALL(name)     ROW_FLOAT(name), ROW_INTEGER(name), [STK_U8] = loop_##name##_u8
#define ROW_CAST(from)                                                                                                 \
    [STK_F32] = cast_##from##_to_f32, [STK_F64] = cast_##from##_to_f64, [STK_I64] = cast_##from##_to_i64,              \
    [STK_I32] = cast_##from##_to_i32, [STK_I8] = cast_##from##_to_i8, [STK_U8] = cast_##from##_to_u8,                  \
    [STK_BOOL] = cast_##from##_to_bool

const stk_element_table STK_ISA_NAME(stk_element) = {
    .unary =
        {
            [STK_UNARY_neg] = {ROW_FLOAT(neg), ROW_INTEGER(neg)},
            [STK_UNARY_abs] = {ROW_FLOAT(abs), ROW_INTEGER(abs)},
            [STK_UNARY_square] = {ROW_FLOAT(square), ROW_INTEGER(square)},
            [STK_UNARY_sign] = {ROW_FLOAT(sign), ROW_INTEGER(sign)},
            [STK_UNARY_relu] = {ROW_FLOAT(relu), ROW_INTEGER(relu)},
            [STK_UNARY_exp] = {ROW_FLOAT(exp)},
            [STK_UNARY_log] = {ROW_FLOAT(log)},
            [STK_UNARY_sqrt] = {ROW_FLOAT(sqrt)},
            [STK_UNARY_rsqrt] = {ROW_FLOAT(rsqrt)},
            [STK_UNARY_reciprocal] = {ROW_FLOAT(reciprocal)},
            [STK_UNARY_tanh] = {ROW_FLOAT(tanh)},
            [STK_UNARY_sigmoid] = {ROW_FLOAT(sigmoid)},
            [STK_UNARY_erf] = {ROW_FLOAT(erf)},
            [STK_UNARY_sin] = {ROW_FLOAT(sin)},
            [STK_UNARY_cos] = {ROW_FLOAT(cos)},
            [STK_UNARY_floor] = {ROW_FLOAT(floor)},
            [STK_UNARY_ceil] = {ROW_FLOAT(ceil)},
            [STK_UNARY_round] = {ROW_FLOAT(round)},
        },
    .binary =
        {
            [STK_BINARY_add] = {ROW_ALL(add)},
            [STK_BINARY_sub] = {ROW_ALL(sub)},
            [STK_BINARY_mul] = {ROW_ALL(mul)},
            [STK_BINARY_div] = {ROW_FLOAT(div)},
            [STK_BINARY_max] = {ROW_ALL(max)},
            [STK_BINARY_min] = {ROW_ALL(min)},
            [STK_BINARY_pow] = {ROW_FLOAT(pow)},
        },
    .compare =
        {
            [STK_COMPARE_equal] = {ROW_ALL(equal), [STK_BOOL] = loop_equal_u8},
            [STK_COMPARE_not_equal] = {ROW_ALL(not_equal), [STK_BOOL] = loop_not_equal_u8},
            [STK_COMPARE_less] = {ROW_ALL(less), [STK_BOOL] = loop_less_u8},
            [STK_COMPARE_less_equal] = {ROW_ALL(less_equal), [STK_BOOL] = loop_less_equal_u8},
            [STK_COMPARE_greater] = {ROW_ALL(greater), [STK_BOOL] = loop_greater_u8},
            [STK_COMPARE_greater_equal] = {ROW_ALL(greater_equal), [STK_BOOL] = loop_greater_equal_u8},
        },
    .cast =
        {
            [STK_F32] = {ROW_CAST(f32), [STK_BF16] = cast_f32_to_bf16, [STK_F16] = cast_f32_to_f16},
            [STK_F64] = {ROW_CAST(f64)},
            [STK_BF16] = {[STK_F32] = cast_bf16_to_f32},
            [STK_F16] = {[STK_F32] = cast_f16_to_f32},
            [STK_I64] = {ROW_CAST(i64)},
            [STK_I32] = {ROW_CAST(i32)},
            [STK_I8] = {ROW_CAST(i8)},
            [STK_U8] = {ROW_CAST(u8)},
            [STK_BOOL] = {ROW_CAST(u8)},
        },
    .select = {select_uint8_t, select_uint16_t, select_uint32_t, select_uint64_t},
    .gather = {gather_uint8_t, gather_uint16_t, gather_uint32_t, gather_uint64_t},
    .dropout_f32 = dropout_f32,
    .dropout_f64 = dropout_f64,
};

/* What each op makes of one element, as an expression of the operands a and b, for the loops of element_isa.c.
 *
 *   X(name, suffix, T, D, expression)   operands of type T, a result of type D
 *   X(from, to, T, D, expression)       of casts
 */
#ifndef STK_DEVICE_CPU_ELEMENT_ELEMENT_LIST_H
#define STK_DEVICE_CPU_ELEMENT_ELEMENT_LIST_H

#define STK_SUFFIX_f32  STK_F32
#define STK_SUFFIX_f64  STK_F64
#define STK_SUFFIX_bf16 STK_BF16
#define STK_SUFFIX_f16  STK_F16
#define STK_SUFFIX_i64  STK_I64
#define STK_SUFFIX_i32  STK_I32
#define STK_SUFFIX_i8   STK_I8
#define STK_SUFFIX_u8   STK_U8
#define STK_SUFFIX_bool STK_BOOL

/* --- unary --- */

/* A NaN of relu stays one. */
#define STK_ELEMENT_FLOAT_UNARY(X, suffix, T, fabs_, sqrt_, floor_, ceil_, round_)                                     \
    X(neg, suffix, T, T, -a)                                                                                           \
    X(abs, suffix, T, T, fabs_(a))                                                                                     \
    X(relu, suffix, T, T, a <= 0 ? 0 : a)                                                                              \
    X(sign, suffix, T, T, (T)(a > 0 ? 1 : 0) - (T)(a < 0 ? 1 : 0))                                                     \
    X(floor, suffix, T, T, floor_(a))                                                                                  \
    X(ceil, suffix, T, T, ceil_(a))                                                                                    \
    X(round, suffix, T, T, round_(a))                                                                                  \
    STK_ELEMENT_ROOT_UNARY(X, suffix, T, sqrt_)
#define STK_ELEMENT_ROOT_UNARY(X, suffix, T, sqrt_)                                                                    \
    X(sqrt, suffix, T, T, sqrt_(a))                                                                                    \
    X(rsqrt, suffix, T, T, 1 / sqrt_(a))                                                                               \
    X(reciprocal, suffix, T, T, 1 / a)                                                                                 \
    X(square, suffix, T, T, a *a)
#define STK_ELEMENT_CURVE_UNARY(X)                                                                                     \
    X(exp, f32, float, float, exp_f32(a))                                                                              \
    X(log, f32, float, float, log_f32(a))                                                                              \
    X(log1p, f32, float, float, log1p_f32(a))                                                                          \
    X(expm1, f32, float, float, expm1_f32(a))                                                                          \
    X(tanh, f32, float, float, tanh_f32(a))                                                                            \
    X(sigmoid, f32, float, float, sigmoid_f32(a))                                                                      \
    X(erf, f32, float, float, erf_f32(a))
/* Whose results of operands that bf16 has may need rounding to be of bf16. */
#define STK_ELEMENT_ROUNDED_UNARY(X)                                                                                   \
    STK_ELEMENT_ROOT_UNARY(X, f32, float, sqrtf)                                                                       \
    STK_ELEMENT_CURVE_UNARY(X)

/* In the unsigned type, which wraps. */
#define STK_ELEMENT_INTEGER_UNARY(X, suffix, T, U)                                                                     \
    X(neg, suffix, T, T, 0 - (U)a)                                                                                     \
    X(abs, suffix, T, T, a < 0 ? 0 - (U)a : (U)a)                                                                      \
    X(square, suffix, T, T, (U)a *(U)a)                                                                                \
    X(sign, suffix, T, T, (a > 0) - (a < 0))                                                                           \
    X(relu, suffix, T, T, a > 0 ? a : 0)

#define STK_ELEMENT_UNARY(X)                                                                                           \
    STK_ELEMENT_FLOAT_UNARY(X, f32, float, fabsf, sqrtf, floorf, ceilf, nearbyintf)                                    \
    STK_ELEMENT_FLOAT_UNARY(X, f64, double, fabs, sqrt, floor, ceil, nearbyint)                                        \
    STK_ELEMENT_CURVE_UNARY(X)                                                                                         \
    STK_ELEMENT_INTEGER_UNARY(X, i64, int64_t, uint64_t)                                                               \
    STK_ELEMENT_INTEGER_UNARY(X, i32, int32_t, uint32_t)                                                               \
    STK_ELEMENT_INTEGER_UNARY(X, i8, int8_t, uint8_t)

/* --- binary --- */

/* max and min keep a NaN of either side. */
#define STK_ELEMENT_ROUNDED_BINARY(X) STK_ELEMENT_ARITHMETIC(X, f32, float)
#define STK_ELEMENT_ARITHMETIC(X, suffix, T)                                                                           \
    X(add, suffix, T, T, a + b)                                                                                        \
    X(sub, suffix, T, T, a - b)                                                                                        \
    X(mul, suffix, T, T, a *b)                                                                                         \
    X(div, suffix, T, T, a / b)
#define STK_ELEMENT_FLOAT_BINARY(X, suffix, T)                                                                         \
    STK_ELEMENT_ARITHMETIC(X, suffix, T)                                                                               \
    X(max, suffix, T, T, ((a > b) | (a != a)) ? a : b)                                                                 \
    X(min, suffix, T, T, ((a < b) | (a != a)) ? a : b)

#define STK_ELEMENT_INTEGER_BINARY(X, suffix, T, U)                                                                    \
    X(add, suffix, T, T, (U)a + (U)b)                                                                                  \
    X(sub, suffix, T, T, (U)a - (U)b)                                                                                  \
    X(mul, suffix, T, T, (U)a *(U)b)                                                                                   \
    X(max, suffix, T, T, a > b ? a : b)                                                                                \
    X(min, suffix, T, T, a < b ? a : b)

#define STK_ELEMENT_BINARY(X)                                                                                          \
    STK_ELEMENT_FLOAT_BINARY(X, f32, float)                                                                            \
    STK_ELEMENT_FLOAT_BINARY(X, f64, double)                                                                           \
    STK_ELEMENT_INTEGER_BINARY(X, i64, int64_t, uint64_t)                                                              \
    STK_ELEMENT_INTEGER_BINARY(X, i32, int32_t, uint32_t)                                                              \
    STK_ELEMENT_INTEGER_BINARY(X, i8, int8_t, uint8_t)                                                                 \
    STK_ELEMENT_INTEGER_BINARY(X, u8, uint8_t, uint8_t)

/* --- compare --- */

#define STK_ELEMENT_COMPARE_OF(X, suffix, T)                                                                           \
    X(equal, suffix, T, uint8_t, a == b)                                                                               \
    X(not_equal, suffix, T, uint8_t, a != b)                                                                           \
    X(less, suffix, T, uint8_t, a < b)                                                                                 \
    X(less_equal, suffix, T, uint8_t, a <= b)                                                                          \
    X(greater, suffix, T, uint8_t, a > b)                                                                              \
    X(greater_equal, suffix, T, uint8_t, a >= b)

#define STK_ELEMENT_COMPARE(X)                                                                                         \
    STK_ELEMENT_COMPARE_OF(X, f32, float)                                                                              \
    STK_ELEMENT_COMPARE_OF(X, f64, double)                                                                             \
    STK_ELEMENT_COMPARE_OF(X, i64, int64_t)                                                                            \
    STK_ELEMENT_COMPARE_OF(X, i32, int32_t)                                                                            \
    STK_ELEMENT_COMPARE_OF(X, i8, int8_t)                                                                              \
    STK_ELEMENT_COMPARE_OF(X, u8, uint8_t)

/* --- cast --- */

/* Held at the ends, NaN as 0. `end` is the first number above the range. */
#define STK_ELEMENT_HOLD(D, low, end, least, most) (a != a ? 0 : a <= (low) ? (least) : a >= (end) ? (most) : (D)a)

#define STK_ELEMENT_CAST_FLOAT(X, from, T)                                                                             \
    X(from, i64, T, int64_t, STK_ELEMENT_HOLD(int64_t, (T)-0x1p63, (T)0x1p63, INT64_MIN, INT64_MAX))                   \
    X(from, i32, T, int32_t, STK_ELEMENT_HOLD(int32_t, (T)-0x1p31, (T)0x1p31, INT32_MIN, INT32_MAX))                   \
    X(from, i8, T, int8_t, STK_ELEMENT_HOLD(int32_t, -128, 127, INT8_MIN, INT8_MAX))                                   \
    X(from, u8, T, uint8_t, STK_ELEMENT_HOLD(int32_t, 0, 255, 0, UINT8_MAX))                                           \
    X(from, bool, T, uint8_t, a != 0)

#define STK_ELEMENT_CAST_INTEGER(X, from, T)                                                                           \
    X(from, f32, T, float, a)                                                                                          \
    X(from, f64, T, double, a)                                                                                         \
    X(from, i64, T, int64_t, a)                                                                                        \
    X(from, i32, T, int32_t, a)                                                                                        \
    X(from, i8, T, int8_t, a)                                                                                          \
    X(from, u8, T, uint8_t, a)                                                                                         \
    X(from, bool, T, uint8_t, a != 0)

/* The 16-bit floats from and to f32 only. */
#define STK_ELEMENT_CAST(X)                                                                                            \
    STK_ELEMENT_CAST_FLOAT(X, f32, float)                                                                              \
    STK_ELEMENT_CAST_FLOAT(X, f64, double)                                                                             \
    X(f32, f64, float, double, a)                                                                                      \
    X(f64, f32, double, float, a)                                                                                      \
    X(f32, f32, float, float, a)                                                                                       \
    X(f64, f64, double, double, a)                                                                                     \
    X(f32, bf16, float, uint16_t, bf16_from_f32(a))                                                                    \
    X(bf16, f32, uint16_t, float, bf16_to_f32(a))                                                                      \
    X(f32, f16, float, uint16_t, f16_from_f32(a))                                                                      \
    X(f16, f32, uint16_t, float, f16_to_f32(a))                                                                        \
    STK_ELEMENT_CAST_INTEGER(X, i64, int64_t)                                                                          \
    STK_ELEMENT_CAST_INTEGER(X, i32, int32_t)                                                                          \
    STK_ELEMENT_CAST_INTEGER(X, i8, int8_t)                                                                            \
    STK_ELEMENT_CAST_INTEGER(X, u8, uint8_t)

#endif

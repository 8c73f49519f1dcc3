/* The loops of element.h. One macro makes a loop; element_list.h says which ops exist for which dtype. */
#include <math.h>

#include "device/cpu/element/element.h"
#include "device/cpu/element/element_draw.h"
#include "device/cpu/element/element_gelu.h"
#include "device/cpu/element/element_list.h"
#include "device/cpu/element/element_math.h"

#define LOOP _Pragma("omp simd") for (int64_t i = 0; i < n; i++)

/* A loop over an expression of one operand, and of two. */
#define LOOP_OF_ONE(function, T, D, expression)                                                                        \
    static void function(int64_t n, void *dst, const void *const *src)                                                 \
    {                                                                                                                  \
        D *y = dst;                                                                                                    \
        const T *x = src[0];                                                                                           \
        LOOP                                                                                                           \
        {                                                                                                              \
            T a = x[i];                                                                                                \
            y[i] = (D)(expression);                                                                                    \
        }                                                                                                              \
    }
#define LOOP_OF_TWO(function, T, D, expression)                                                                        \
    static void function(int64_t n, void *dst, const void *const *src)                                                 \
    {                                                                                                                  \
        D *y = dst;                                                                                                    \
        const T *p = src[0], *q = src[1];                                                                              \
        LOOP                                                                                                           \
        {                                                                                                              \
            T a = p[i], b = q[i];                                                                                      \
            y[i] = (D)(expression);                                                                                    \
        }                                                                                                              \
    }
#define UNARY(name, suffix, ...)  LOOP_OF_ONE(loop_##name##_##suffix, __VA_ARGS__)
#define BINARY(name, suffix, ...) LOOP_OF_TWO(loop_##name##_##suffix, __VA_ARGS__)
#define CAST(from, to, ...)       LOOP_OF_ONE(loop_##from##_to_##to, __VA_ARGS__)

STK_ELEMENT_UNARY(UNARY)
STK_ELEMENT_BINARY(BINARY)
STK_ELEMENT_COMPARE(BINARY)
STK_ELEMENT_CAST(CAST)

/* --- bf16 in registers of f32 --- */

#define ROUNDED_UNARY(name, suffix, T, D, expression)  LOOP_OF_ONE(loop_##name##_rounded, T, D, bf16_round(expression))
#define ROUNDED_BINARY(name, suffix, T, D, expression) LOOP_OF_TWO(loop_##name##_rounded, T, D, bf16_round(expression))

STK_ELEMENT_ROUNDED_UNARY(ROUNDED_UNARY)
STK_ELEMENT_ROUNDED_BINARY(ROUNDED_BINARY)
LOOP_OF_ONE(loop_store_bf16, float, uint16_t, (uint32_t)bits_of(a) >> 16)

#define STORED(function, P, Q, D, load_a, load_b, store, expression)                                                   \
    static void function(int64_t n, void *dst, const void *const *src)                                                 \
    {                                                                                                                  \
        D *y = dst;                                                                                                    \
        const P *p = src[0];                                                                                           \
        const Q *q = src[1];                                                                                           \
        LOOP                                                                                                           \
        {                                                                                                              \
            float a = load_a(p[i]), b = load_b(q[i]);                                                                  \
            y[i] = store(expression);                                                                                  \
        }                                                                                                              \
    }
/* By how many operands are stored as bf16, and whether the result is. */
#define STORED_BINARY(name, expression)                                                                                \
    STORED(loop_##name##_0_stored, float, float, uint16_t, , , bf16_from_f32, expression)                              \
    STORED(loop_##name##_1_wide, uint16_t, float, float, bf16_to_f32, , bf16_round, expression)                        \
    STORED(loop_##name##_1_stored, uint16_t, float, uint16_t, bf16_to_f32, , bf16_from_f32, expression)                \
    STORED(loop_##name##_2_wide, uint16_t, uint16_t, float, bf16_to_f32, bf16_to_f32, bf16_round, expression)          \
    STORED(loop_##name##_2_stored, uint16_t, uint16_t, uint16_t, bf16_to_f32, bf16_to_f32, bf16_from_f32, expression)

STORED_BINARY(add, a + b)
STORED_BINARY(mul, a *b)

/* --- whole parts of groups in bf16 --- */

#define WHOLE_LOOPS(name, suffix, T, load)                                                                             \
    static void loop_##name##_##suffix(int64_t n, void *dst, const void *const *src)                                   \
    {                                                                                                                  \
        uint16_t *y = dst;                                                                                             \
        const T *x = src[0];                                                                                           \
        LOOP y[i] = bf16_from_tame_f32(load(x[i]) * name##_share_f32(load(x[i])));                                     \
    }                                                                                                                  \
    static void loop_##name##_share_##suffix(int64_t n, void *dst, const void *const *src)                             \
    {                                                                                                                  \
        float *y = dst;                                                                                                \
        const T *x = src[0];                                                                                           \
        LOOP y[i] = name##_share_f32(load(x[i]));                                                                      \
    }                                                                                                                  \
    static void loop_##name##_rest_##suffix(int64_t n, void *dst, const void *const *src)                              \
    {                                                                                                                  \
        uint16_t *y = dst;                                                                                             \
        const T *x = src[0];                                                                                           \
        const float *share = src[1];                                                                                   \
        LOOP y[i] = bf16_from_tame_f32(load(x[i]) * share[i]);                                                         \
    }                                                                                                                  \
    static void loop_##name##_grad_##suffix(int64_t n, void *dst, const void *const *src)                              \
    {                                                                                                                  \
        uint16_t *y = dst;                                                                                             \
        const T *x = src[0], *dy = src[1];                                                                             \
        LOOP y[i] = bf16_from_tame_f32(load(dy[i]) * name##_slope_f32(load(x[i]), name##_share_f32(load(x[i]))));      \
    }                                                                                                                  \
    static void loop_##name##_grad_rest_##suffix(int64_t n, void *dst, const void *const *src)                         \
    {                                                                                                                  \
        uint16_t *y = dst;                                                                                             \
        const T *x = src[0], *dy = src[1];                                                                             \
        const float *share = src[2];                                                                                   \
        LOOP y[i] = bf16_from_tame_f32(load(dy[i]) * name##_slope_f32(load(x[i]), share[i]));                          \
    }
#define WHOLE(name)                                                                                                    \
    WHOLE_LOOPS(name, wide, float, )                                                                                   \
    WHOLE_LOOPS(name, stored, uint16_t, bf16_to_f32)

WHOLE(gelu)
WHOLE(gelu_tanh)

/* --- the same in f32, with the bits of the instructions one by one --- */

#define WHOLE_F32(name)                                                                                                \
    static void loop_##name##_f32(int64_t n, void *dst, const void *const *src)                                        \
    {                                                                                                                  \
        float *y = dst;                                                                                                \
        const float *x = src[0];                                                                                       \
        LOOP y[i] = x[i] * share_of_f32(name##_curve_f32(x[i]));                                                       \
    }                                                                                                                  \
    static void loop_##name##_share_f32(int64_t n, void *dst, const void *const *src)                                  \
    {                                                                                                                  \
        float *y = dst;                                                                                                \
        const float *x = src[0];                                                                                       \
        LOOP y[i] = name##_curve_f32(x[i]);                                                                            \
    }                                                                                                                  \
    static void loop_##name##_rest_f32(int64_t n, void *dst, const void *const *src)                                   \
    {                                                                                                                  \
        float *y = dst;                                                                                                \
        const float *x = src[0], *curve = src[1];                                                                      \
        LOOP y[i] = x[i] * share_of_f32(curve[i]);                                                                     \
    }                                                                                                                  \
    static void loop_##name##_grad_f32(int64_t n, void *dst, const void *const *src)                                   \
    {                                                                                                                  \
        float *y = dst;                                                                                                \
        const float *x = src[0], *dy = src[1];                                                                         \
        LOOP y[i] = name##_grad_f32(x[i], dy[i], name##_curve_f32(x[i]));                                              \
    }                                                                                                                  \
    static void loop_##name##_grad_rest_f32(int64_t n, void *dst, const void *const *src)                              \
    {                                                                                                                  \
        float *y = dst;                                                                                                \
        const float *x = src[0], *dy = src[1], *curve = src[2];                                                        \
        LOOP y[i] = name##_grad_f32(x[i], dy[i], curve[i]);                                                            \
    }

WHOLE_F32(gelu)
WHOLE_F32(gelu_tanh)

/* --- what calls libm --- */

#define LIBM_F64(name, expression) UNARY(name, f64, double, double, expression)
LIBM_F64(exp, exp(a))
LIBM_F64(log, log(a))
LIBM_F64(log1p, log1p(a))
LIBM_F64(expm1, expm1(a))
LIBM_F64(tanh, tanh(a))
/* As sigmoid_f32. */
LIBM_F64(sigmoid, (a < 0 ? exp(a) : 1) / (1 + exp(-fabs(a))))
LIBM_F64(erf, erf(a))
LIBM_F64(sin, sin(a))
LIBM_F64(cos, cos(a))
BINARY(pow, f32, float, float, powf(a, b))
BINARY(pow, f64, double, double, pow(a, b))

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

/* --- select and gather --- */

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

/* --- dropout --- */

#define DROPOUT(suffix, T, S, D, load, store)                                                                          \
    static void dropout_##suffix(const stk_dropout_args *args, int64_t first, int64_t n, void *dst, const void *src)   \
    {                                                                                                                  \
        D *y = dst;                                                                                                    \
        const S *x = src;                                                                                              \
        drawn_bits drawn;                                                                                              \
        int32_t limit = stk_dropout_limit(args->rate);                                                                 \
        T scale = (T)(1 / (1 - args->rate));                                                                           \
        for (int64_t at = 0; at < n; at += PIECE) {                                                                    \
            int n_here = n - at < PIECE ? (int)(n - at) : PIECE;                                                       \
            draw_parts(args, first + at, n_here, &drawn);                                                              \
            _Pragma("omp simd") for (int i = 0; i < n_here; i++)                                                       \
            {                                                                                                          \
                D kept = store(load(x[at + i]) * scale);                                                               \
                y[at + i] = drawn.part[i] >= limit ? kept : 0;                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }

DROPOUT(f32, float, float, float, , )
DROPOUT(bf16, float, float, float, , bf16_round)
DROPOUT(to_bf16, float, float, uint16_t, , bf16_from_f32)
DROPOUT(from_bf16, float, uint16_t, float, bf16_to_f32, bf16_round)
DROPOUT(stored, float, uint16_t, uint16_t, bf16_to_f32, bf16_from_f32)
DROPOUT(f64, double, double, double, , )

/* --- the table --- */

#define ROW_UNARY(name, suffix, ...)          [STK_UNARY_##name][STK_SUFFIX_##suffix] = loop_##name##_##suffix,
#define ROW_ROUNDED_UNARY(name, suffix, ...)  [STK_UNARY_##name] = loop_##name##_rounded,
#define ROW_ROUNDED_BINARY(name, suffix, ...) [STK_BINARY_##name] = loop_##name##_rounded,
#define ROW_STORED(name)                                                                                               \
    [STK_BINARY_##name] = {{loop_##name##_rounded, loop_##name##_0_stored},                                            \
                           {loop_##name##_1_wide, loop_##name##_1_stored},                                             \
                           {loop_##name##_2_wide, loop_##name##_2_stored}}
#define ROW_WHOLE(name)                                                                                                \
    [STK_WHOLE_##name] = {{loop_##name##_wide, loop_##name##_stored},                                                  \
                          {loop_##name##_share_wide, loop_##name##_share_stored},                                      \
                          {loop_##name##_rest_wide, loop_##name##_rest_stored}},                                       \
    [STK_WHOLE_##name##_grad] = {[STK_WHOLE_ALONE] = {loop_##name##_grad_wide, loop_##name##_grad_stored},             \
                                 [STK_WHOLE_REST] = {loop_##name##_grad_rest_wide, loop_##name##_grad_rest_stored}}
#define ROW_WHOLE_F32(name)                                                                                            \
    [STK_WHOLE_##name##_f32] = {{loop_##name##_f32}, {loop_##name##_share_f32}, {loop_##name##_rest_f32}},             \
    [STK_WHOLE_##name##                                                                                                \
        _f32_grad] = {[STK_WHOLE_ALONE] = {loop_##name##_grad_f32}, [STK_WHOLE_REST] = {loop_##name##_grad_rest_f32}}
#define ROW_BINARY(name, suffix, ...)  [STK_BINARY_##name][STK_SUFFIX_##suffix] = loop_##name##_##suffix,
#define ROW_COMPARE(name, suffix, ...) [STK_COMPARE_##name][STK_SUFFIX_##suffix] = loop_##name##_##suffix,
#define ROW_CAST(from, to, ...)        [STK_SUFFIX_##from][STK_SUFFIX_##to] = loop_##from##_to_##to,
#define ROW_LIBM(name)                 [STK_UNARY_##name][STK_F64] = loop_##name##_f64
#define ROW_TRIG(name)                 [STK_UNARY_##name][STK_F32] = loop_##name##_f32
#define ROW_POW(suffix)                [STK_BINARY_pow][STK_SUFFIX_##suffix] = loop_pow_##suffix
/* bool lies in memory as u8 does. */
#define ROW_BOOL(name) [STK_COMPARE_##name][STK_BOOL] = loop_##name##_u8
#define FROM_BOOL(to)  [STK_BOOL][STK_SUFFIX_##to] = loop_u8_to_##to

const stk_element_table STK_ISA_NAME(stk_element) = {
    .unary = {ROW_LIBM(exp), ROW_LIBM(log), ROW_LIBM(tanh), ROW_LIBM(sigmoid), ROW_LIBM(erf), ROW_LIBM(sin),
              ROW_LIBM(cos), ROW_LIBM(log1p), ROW_LIBM(expm1), ROW_TRIG(sin), ROW_TRIG(cos),
              STK_ELEMENT_UNARY(ROW_UNARY)},
    .binary = {ROW_POW(f32), ROW_POW(f64), STK_ELEMENT_BINARY(ROW_BINARY)},
    .unary_bf16 = {STK_ELEMENT_ROUNDED_UNARY(ROW_ROUNDED_UNARY)},
    .binary_bf16 = {STK_ELEMENT_ROUNDED_BINARY(ROW_ROUNDED_BINARY)},
    .binary_stored = {ROW_STORED(add), ROW_STORED(mul)},
    .whole = {ROW_WHOLE(gelu), ROW_WHOLE(gelu_tanh), ROW_WHOLE_F32(gelu), ROW_WHOLE_F32(gelu_tanh)},
    .store_bf16 = loop_store_bf16,
    .compare = {ROW_BOOL(equal), ROW_BOOL(not_equal), ROW_BOOL(less), ROW_BOOL(less_equal), ROW_BOOL(greater),
                ROW_BOOL(greater_equal), STK_ELEMENT_COMPARE(ROW_COMPARE)},
    .cast = {FROM_BOOL(f32), FROM_BOOL(f64), FROM_BOOL(i64), FROM_BOOL(i32), FROM_BOOL(i8), FROM_BOOL(u8),
             FROM_BOOL(bool), STK_ELEMENT_CAST(ROW_CAST)},
    .select = {select_uint8_t, select_uint16_t, select_uint32_t, select_uint64_t},
    .gather = {gather_uint8_t, gather_uint16_t, gather_uint32_t, gather_uint64_t},
    .dropout_f32 = dropout_f32,
    .dropout_bf16 = {{dropout_bf16, dropout_to_bf16}, {dropout_from_bf16, dropout_stored}},
    .dropout_f64 = dropout_f64,
};

/* The loops of axis.h. */
#include "device/cpu/rows/axis.h"

/* W: the type of sums. A NaN is before nothing and everything is before it. */
#define AXIS(suffix, T, W)                                                                                             \
    static void argmax_##suffix(int64_t n, int64_t n_inner, int n_here, const void *src, bool last, int32_t *dst)      \
    {                                                                                                                  \
        const T *x = src;                                                                                              \
        T best[STK_AXIS_TILE];                                                                                         \
        for (int c = 0; c < n_here; c++) {                                                                             \
            best[c] = x[c];                                                                                            \
            dst[c] = 0;                                                                                                \
        }                                                                                                              \
        for (int64_t k = 1; k < n; k++) {                                                                              \
            x += n_inner;                                                                                              \
            for (int c = 0; c < n_here; c++) {                                                                         \
                T a = best[c], b = x[c];                                                                               \
                bool a_nan = a != a, b_nan = b != b;                                                                   \
                bool takes = a_nan ? b_nan & last : b_nan | (b > a) | (last & (b == a));                               \
                best[c] = takes ? b : a;                                                                               \
                dst[c] = takes ? (int32_t)k : dst[c];                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void cumsum_##suffix(int64_t n, int64_t n_inner, int n_here, const void *src, bool exclusive, bool reverse, \
                                void *dst)                                                                             \
    {                                                                                                                  \
        W sum[STK_AXIS_TILE] = {0};                                                                                    \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            int64_t at = (reverse ? n - 1 - k : k) * n_inner;                                                          \
            const T *x = (const T *)src + at;                                                                          \
            T *y = (T *)dst + at;                                                                                      \
            for (int c = 0; c < n_here; c++) {                                                                         \
                W before = sum[c];                                                                                     \
                sum[c] = before + (W)x[c];                                                                             \
                y[c] = (T)(exclusive ? before : sum[c]);                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void fill_##suffix(int64_t n, int64_t value, void *dst)                                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)dst)[i] = (T)value;                                                                                  \
    }

AXIS(f32, float, double)
AXIS(f64, double, double)
AXIS(i64, int64_t, uint64_t)
AXIS(i32, int32_t, uint64_t)
AXIS(i8, int8_t, uint64_t)
AXIS(u8, uint8_t, uint64_t)

#define FNS(suffix)                                                                                                    \
    {                                                                                                                  \
        argmax_##suffix, cumsum_##suffix, fill_##suffix                                                                \
    }

const stk_axis_table STK_ISA_NAME(stk_axis) = {
    .fns =
        {
            [STK_F32] = FNS(f32),
            [STK_F64] = FNS(f64),
            [STK_I64] = FNS(i64),
            [STK_I32] = FNS(i32),
            [STK_I8] = FNS(i8),
            [STK_U8] = FNS(u8),
        },
};

#include "device/cpu/rows/reduce.h"

#include <math.h>

#include "device/cpu/simd/half.h"

/* Sums, maxima and minima of a run have that many lanes, whatever the vectors' length, so that all instruction sets
 * agree. */
enum { TILE = 64, LANES = 32 };

/* Rows of a tile lie apart, so that little of the next ones is fetched unasked. */
enum { AHEAD = 8, LINE = 64 };

static inline void fetch_row(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const char *)at + i);
}

/* T: of the elements, which load turns into numbers; P: of partial sums; field and W: of the wide accumulator; U: the
 * type to add it in. Columns of a whole tile have a loop of their own, whose sums stay in registers. */
#define SUM(suffix, T, load, P, field, W, U)                                                                           \
    static void sum_run_##suffix(int64_t n, const void *src, stk_wide *acc)                                            \
    {                                                                                                                  \
        const T *x = src;                                                                                              \
        P sum[LANES] = {0};                                                                                            \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            _Pragma("omp simd") for (int c = 0; c < LANES; c++) sum[c] += (P)load(x[i + c]);                           \
        for (int c = 0; i < n; i++, c++)                                                                               \
            sum[c] += (P)load(x[i]);                                                                                   \
        for (int half = LANES / 2; half > 0; half /= 2)                                                                \
            for (int c = 0; c < half; c++)                                                                             \
                sum[c] += sum[c + half];                                                                               \
        acc->field = (W)((U)acc->field + (U)sum[0]);                                                                   \
    }                                                                                                                  \
    static void sum_columns_##suffix(int64_t n_rows, int64_t n_cols, const void *src, int64_t stride, stk_wide *acc)   \
    {                                                                                                                  \
        for (int64_t at = 0; at < n_cols; at += TILE) {                                                                \
            int n = n_cols - at < TILE ? (int)(n_cols - at) : TILE;                                                    \
            const T *x = (const T *)src + at;                                                                          \
            P sum[TILE] = {0};                                                                                         \
            if (n == TILE)                                                                                             \
                for (int64_t r = 0; r < n_rows; r++, x += stride) {                                                    \
                    fetch_row(x + AHEAD * stride, TILE * sizeof(T));                                                   \
                    _Pragma("omp simd") for (int c = 0; c < TILE; c++) sum[c] += (P)load(x[c]);                        \
                }                                                                                                      \
            else                                                                                                       \
                for (int64_t r = 0; r < n_rows; r++, x += stride)                                                      \
                    _Pragma("omp simd") for (int c = 0; c < n; c++) sum[c] += (P)load(x[c]);                           \
            for (int c = 0; c < n; c++)                                                                                \
                acc[at + c].field = (W)((U)acc[at + c].field + (U)sum[c]);                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void sum_merge_##suffix(int64_t n, const stk_wide *other, stk_wide *acc)                                    \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            acc[i].field = (W)((U)acc[i].field + (U)other[i].field);                                                   \
    }

SUM(f32, float, , float, f, double, double)
SUM(f64, double, , double, f, double, double)
SUM(bf16, uint16_t, bf16_to_f32, float, f, double, double)
SUM(f16, uint16_t, f16_to_f32, float, f, double, double)
SUM(i64, int64_t, , uint64_t, i, int64_t, uint64_t)
SUM(i32, int32_t, , uint64_t, i, int64_t, uint64_t)
SUM(i8, int8_t, , uint64_t, i, int64_t, uint64_t)
SUM(u8, uint8_t, , uint64_t, i, int64_t, uint64_t)

/* A NaN wins and stays: `greater` is true for it. */
#define MOST(name, suffix, T, field, W, greater)                                                                       \
    static void name##_run_##suffix(int64_t n, const void *src, stk_wide *acc)                                         \
    {                                                                                                                  \
        const T *x = src;                                                                                              \
        T most[LANES];                                                                                                 \
        for (int c = 0; c < LANES; c++)                                                                                \
            most[c] = (T)acc->field;                                                                                   \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            _Pragma("omp simd") for (int c = 0; c < LANES; c++)                                                        \
            {                                                                                                          \
                T a = x[i + c], b = most[c];                                                                           \
                most[c] = greater(a, b) ? a : b;                                                                       \
            }                                                                                                          \
        for (int c = 0; i < n; i++, c++)                                                                               \
            most[c] = greater(x[i], most[c]) ? x[i] : most[c];                                                         \
        for (int c = 1; c < LANES; c++)                                                                                \
            most[0] = greater(most[c], most[0]) ? most[c] : most[0];                                                   \
        acc->field = (W)most[0];                                                                                       \
    }                                                                                                                  \
    static void name##_columns_##suffix(int64_t n_rows, int64_t n_cols, const void *src, int64_t stride,               \
                                        stk_wide *acc)                                                                 \
    {                                                                                                                  \
        for (int64_t at = 0; at < n_cols; at += TILE) {                                                                \
            int n = n_cols - at < TILE ? (int)(n_cols - at) : TILE;                                                    \
            const T *x = (const T *)src + at;                                                                          \
            T most[TILE];                                                                                              \
            for (int c = 0; c < n; c++)                                                                                \
                most[c] = (T)acc[at + c].field;                                                                        \
            for (int64_t r = 0; r < n_rows; r++, x += stride)                                                          \
                _Pragma("omp simd") for (int c = 0; c < n; c++)                                                        \
                {                                                                                                      \
                    T a = x[c], b = most[c];                                                                           \
                    most[c] = greater(a, b) ? a : b;                                                                   \
                }                                                                                                      \
            for (int c = 0; c < n; c++)                                                                                \
                acc[at + c].field = (W)most[c];                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_merge_##suffix(int64_t n, const stk_wide *other, stk_wide *acc)                                 \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            acc[i].field = greater(other[i].field, acc[i].field) ? other[i].field : acc[i].field;                      \
    }

#define GREATER_FLOAT(a, b)   (((a) > (b)) | ((a) != (a)))
#define GREATER_INTEGER(a, b) ((a) > (b))
#define LESS_FLOAT(a, b)      (((a) < (b)) | ((a) != (a)))
#define LESS_INTEGER(a, b)    ((a) < (b))
MOST(max, f32, float, f, double, GREATER_FLOAT)
MOST(min, f32, float, f, double, LESS_FLOAT)
MOST(max, f64, double, f, double, GREATER_FLOAT)
MOST(min, f64, double, f, double, LESS_FLOAT)
MOST(max, i64, int64_t, i, int64_t, GREATER_INTEGER)
MOST(min, i64, int64_t, i, int64_t, LESS_INTEGER)
MOST(max, i32, int32_t, i, int64_t, GREATER_INTEGER)
MOST(min, i32, int32_t, i, int64_t, LESS_INTEGER)
MOST(max, i8, int8_t, i, int64_t, GREATER_INTEGER)
MOST(min, i8, int8_t, i, int64_t, LESS_INTEGER)
MOST(max, u8, uint8_t, i, int64_t, GREATER_INTEGER)
MOST(min, u8, uint8_t, i, int64_t, LESS_INTEGER)

/* Products are rare: in the wide type from the start, one after the other. */
#define PROD(suffix, T, field, W, U)                                                                                   \
    static void prod_run_##suffix(int64_t n, const void *src, stk_wide *acc)                                           \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            acc->field = (W)((U)acc->field * (U)((const T *)src)[i]);                                                  \
    }                                                                                                                  \
    static void prod_columns_##suffix(int64_t n_rows, int64_t n_cols, const void *src, int64_t stride, stk_wide *acc)  \
    {                                                                                                                  \
        for (int64_t r = 0; r < n_rows; r++)                                                                           \
            for (int64_t c = 0; c < n_cols; c++)                                                                       \
                acc[c].field = (W)((U)acc[c].field * (U)((const T *)src)[r * stride + c]);                             \
    }                                                                                                                  \
    static void prod_merge_##suffix(int64_t n, const stk_wide *other, stk_wide *acc)                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            acc[i].field = (W)((U)acc[i].field * (U)other[i].field);                                                   \
    }

PROD(f32, float, f, double, double)
PROD(f64, double, f, double, double)
PROD(i64, int64_t, i, int64_t, uint64_t)
PROD(i32, int32_t, i, int64_t, uint64_t)
PROD(i8, int8_t, i, int64_t, uint64_t)
PROD(u8, uint8_t, i, int64_t, uint64_t)

#define FINISH(suffix, T, expression)                                                                                  \
    static void finish_##suffix(int64_t n, const stk_wide *acc, double divisor, void *dst)                             \
    {                                                                                                                  \
        T *y = dst;                                                                                                    \
        (void)divisor;                                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i] = (T)(expression);                                                                                    \
    }

FINISH(f32, float, acc[i].f / divisor)
FINISH(f64, double, acc[i].f / divisor)
FINISH(bf16, uint16_t, bf16_from_f32((float)(acc[i].f / divisor)))
FINISH(f16, uint16_t, f16_from_f32((float)(acc[i].f / divisor)))
FINISH(i64, int64_t, acc[i].i)
FINISH(i32, int32_t, acc[i].i)
FINISH(i8, int8_t, acc[i].i)
FINISH(u8, uint8_t, acc[i].i)

#define FNS(kind, suffix, ...)                                                                                         \
    {                                                                                                                  \
        kind##_run_##suffix, kind##_columns_##suffix, kind##_merge_##suffix, finish_##suffix,                          \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

const stk_reduce_table
    STK_ISA_NAME(stk_reduce) =
        {
            .sum =
                {
                    [STK_F32] = FNS(sum, f32, .f = 0),
                    [STK_F64] = FNS(sum, f64, .f = 0),
                    [STK_BF16] = FNS(sum, bf16, .f = 0),
                    [STK_F16] = FNS(sum, f16, .f = 0),
                    [STK_I64] = FNS(sum, i64, .i = 0),
                    [STK_I32] = FNS(sum, i32, .i = 0),
                    [STK_I8] = FNS(sum, i8, .i = 0),
                    [STK_U8] = FNS(sum, u8, .i = 0),
                },
            .max =
                {
                    [STK_F32] = FNS(max, f32, .f = -INFINITY),
                    [STK_F64] = FNS(max, f64, .f = -INFINITY),
                    [STK_I64] = FNS(max, i64, .i = INT64_MIN),
                    [STK_I32] = FNS(max, i32, .i = INT32_MIN),
                    [STK_I8] = FNS(max, i8, .i = INT8_MIN),
                    [STK_U8] = FNS(max, u8, .i = 0),
                },
            .min =
                {
                    [STK_F32] = FNS(min, f32, .f = INFINITY),
                    [STK_F64] = FNS(min, f64, .f = INFINITY),
                    [STK_I64] = FNS(min, i64, .i = INT64_MAX),
                    [STK_I32] = FNS(min, i32, .i = INT32_MAX),
                    [STK_I8] = FNS(min, i8, .i = INT8_MAX),
                    [STK_U8] = FNS(min, u8, .i = UINT8_MAX),
                },
            .prod =
                {
                    [STK_F32] = FNS(prod, f32, .f = 1),
                    [STK_F64] = FNS(prod, f64, .f = 1),
                    [STK_I64] = FNS(prod, i64, .i = 1),
                    [STK_I32] = FNS(prod, i32, .i = 1),
                    [STK_I8] = FNS(prod, i8, .i = 1),
                    [STK_U8] = FNS(prod, u8, .i = 1),
                },
};

/* See comm/sum.h. */
#include "comm/sum.h"

#include <string.h>

#include "base/half.h"

/* Elements that stay in the first-level cache while all sources are added. */
enum { BLOCK = 1024 };

/* The largest power of two below n, n > 1: how many sources the earlier half has. */
static int half_of(int n)
{
    int half = 1;
    while (2 * half < n)
        half *= 2;
    return half;
}

/* Sums of sources [first, first + n), the earlier half and the later half each in the same way. */
#define SUM(type)                                                                                                      \
    static void add_##type(type *sum, const void *const *src, int n_src, int64_t begin, int64_t n)                     \
    {                                                                                                                  \
        type other[BLOCK];                                                                                             \
        int half = half_of(n_src);                                                                                     \
        const type *a = (const type *)src[0] + begin, *b = (const type *)src[half] + begin;                            \
        if (half > 1) add_##type(sum, src, half, begin, n);                                                            \
        if (n_src - half > 1) add_##type(other, src + half, n_src - half, begin, n);                                   \
        if (half > 1) a = sum;                                                                                         \
        if (n_src - half > 1) b = other;                                                                               \
        for (int64_t i = 0; i < n; i++)                                                                                \
            sum[i] = (type)(a[i] + b[i]);                                                                              \
    }                                                                                                                  \
    static void sum_##type(type *dst, const void *const *src, int n_src, int64_t begin, int64_t n, bool mean)          \
    {                                                                                                                  \
        type sum[BLOCK];                                                                                               \
        if (n_src > 1)                                                                                                 \
            add_##type(sum, src, n_src, begin, n);                                                                     \
        else                                                                                                           \
            memcpy(sum, (const type *)src[0] + begin, (size_t)n * sizeof(type));                                       \
        for (int64_t i = 0; i < n; i++)                                                                                \
            dst[begin + i] = mean ? sum[i] / (type)n_src : sum[i];                                                     \
    }
SUM(float)
SUM(double)
SUM(uint32_t)
SUM(uint64_t)

static void add_bf16(float *sum, const void *const *src, int n_src, int64_t begin, int64_t n)
{
    float other[BLOCK];
    int half = half_of(n_src);
    const uint16_t *a = (const uint16_t *)src[0] + begin;
    if (n_src == 1) {
        for (int64_t i = 0; i < n; i++)
            sum[i] = stk_bf16_to_f32(a[i]);
        return;
    }
    add_bf16(sum, src, half, begin, n);
    add_bf16(other, src + half, n_src - half, begin, n);
    for (int64_t i = 0; i < n; i++)
        sum[i] += other[i];
}

/* Rounded once, when all is added. */
static void sum_bf16(uint16_t *dst, const void *const *src, int n_src, int64_t begin, int64_t n)
{
    float sum[BLOCK];
    add_bf16(sum, src, n_src, begin, n);
    for (int64_t i = 0; i < n; i++)
        dst[begin + i] = stk_f32_to_bf16(sum[i]);
}

void stk_comm_sum(stk_dtype dtype, void *dst, const void *const *src, int n_src, int64_t n, bool mean)
{
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t here = n - at < BLOCK ? n - at : BLOCK;
        switch (dtype) {
        case STK_F32: sum_float(dst, src, n_src, at, here, mean); break;
        case STK_BF16: sum_bf16(dst, src, n_src, at, here); break;
        case STK_F64: sum_double(dst, src, n_src, at, here, mean); break;
        case STK_I64: sum_uint64_t(dst, src, n_src, at, here, false); break;
        default: sum_uint32_t(dst, src, n_src, at, here, false); break;
        }
    }
}

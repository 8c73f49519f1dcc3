/* See comm/sum.h. */
#include "comm/sum.h"

#include "base/half.h"

/* Elements that stay in the first-level cache while all sources are added. */
enum { BLOCK = 1024 };

#define SUM(type)                                                                                                      \
    static void sum_##type(type *dst, const void *const *src, int n_src, int64_t begin, int64_t n, bool mean)          \
    {                                                                                                                  \
        type sum[BLOCK];                                                                                               \
        const type *a = (const type *)src[0] + begin, *b = (const type *)src[n_src > 1] + begin;                       \
        for (int64_t i = 0; i < n; i++)                                                                                \
            sum[i] = n_src > 1 ? (type)(a[i] + b[i]) : a[i];                                                           \
        for (int s = 2; s < n_src; s++) {                                                                              \
            const type *c = (const type *)src[s] + begin;                                                              \
            for (int64_t i = 0; i < n; i++)                                                                            \
                sum[i] = (type)(sum[i] + c[i]);                                                                        \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            dst[begin + i] = mean ? sum[i] / (type)n_src : sum[i];                                                     \
    }
SUM(float)
SUM(double)
SUM(uint32_t)
SUM(uint64_t)

/* Rounded once, when all is added. */
static void sum_bf16(uint16_t *dst, const void *const *src, int n_src, int64_t begin, int64_t n)
{
    float sum[BLOCK];
    const uint16_t *a = (const uint16_t *)src[0] + begin;
    for (int64_t i = 0; i < n; i++)
        sum[i] = stk_bf16_to_f32(a[i]);
    for (int s = 1; s < n_src; s++) {
        const uint16_t *b = (const uint16_t *)src[s] + begin;
        for (int64_t i = 0; i < n; i++)
            sum[i] += stk_bf16_to_f32(b[i]);
    }
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

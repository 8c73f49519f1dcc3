#include "data/stage/affine.h"

#include "data/stage/simd.h"

enum { PERIOD = STK_AFFINE_PERIOD };

void stk_affine_init(stk_affine *affine, const float *a, const float *b, int channels)
{
    for (int k = 0; k < PERIOD; k++) {
        affine->a[k] = a[k % channels];
        affine->b[k] = b[k % channels];
    }
}

STK_SIMD_CLONES
void stk_affine_u8(const stk_affine *affine, const uint8_t *restrict src, float *restrict dst, int64_t n)
{
    const float *a = affine->a, *b = affine->b;
    int64_t i = 0;
    for (; i + PERIOD <= n; i += PERIOD)
        for (int k = 0; k < PERIOD; k++)
            dst[i + k] = (float)src[i + k] * a[k] + b[k];
    for (int k = 0; i < n; i++, k++)
        dst[i] = (float)src[i] * a[k] + b[k];
}

STK_SIMD_CLONES
void stk_affine_f32(const stk_affine *affine, const float *src, float *dst, int64_t n)
{
    const float *a = affine->a, *b = affine->b;
    int64_t i = 0;
    for (; i + PERIOD <= n; i += PERIOD)
        for (int k = 0; k < PERIOD; k++)
            dst[i + k] = src[i + k] * a[k] + b[k];
    for (int k = 0; i < n; i++, k++)
        dst[i] = src[i] * a[k] + b[k];
}

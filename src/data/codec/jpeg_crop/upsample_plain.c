/* libjpeg's triangle filters (jdsample.c): 3/4 of the nearer sample and 1/4 of the further one in each direction. */
#include "data/codec/jpeg_crop/kernels.h"

void stk_jpeg_upsample_h2v1_plain(const uint8_t *src, int n, uint8_t *dst)
{
    for (int i = 0; i < n; i++) {
        dst[2 * i] = (uint8_t)((3 * src[i] + src[i - 1] + 1) >> 2);
        dst[2 * i + 1] = (uint8_t)((3 * src[i] + src[i + 1] + 2) >> 2);
    }
}

void stk_jpeg_upsample_h2v2_plain(const uint8_t *near, const uint8_t *far, int n, uint8_t *dst)
{
    for (int i = 0; i < n; i++) {
        int left = 3 * near[i - 1] + far[i - 1], here = 3 * near[i] + far[i], right = 3 * near[i + 1] + far[i + 1];
        dst[2 * i] = (uint8_t)((3 * here + left + 8) >> 4);
        dst[2 * i + 1] = (uint8_t)((3 * here + right + 7) >> 4);
    }
}

void stk_jpeg_upsample_h1v2_plain(const uint8_t *near, const uint8_t *far, bool far_is_above, int n, uint8_t *dst)
{
    int bias = far_is_above ? 1 : 2;
    for (int i = 0; i < n; i++)
        dst[i] = (uint8_t)((3 * near[i] + far[i] + bias) >> 2);
}

/* YCbCr to RGB with libjpeg's 16-bit fixed-point constants and rounding (jdcolor.c). */
#include "data/codec/jpeg_crop/kernels.h"

enum { STRIP = 32 };

static inline int16_t clamp(int x)
{
    return (int16_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* A strip in loops that compilers turn into vector code, before the channels are put side by side. */
static void convert(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int16_t rgb[3][STRIP])
{
    for (int i = 0; i < STRIP; i++) {
        int l = y[i], b = cb[i] - 128, r = cr[i] - 128;
        rgb[0][i] = clamp(l + ((91881 * r + 32768) >> 16));
        rgb[1][i] = clamp(l + ((-22554 * b - 46802 * r + 32768) >> 16));
        rgb[2][i] = clamp(l + ((116130 * b + 32768) >> 16));
    }
}

void stk_jpeg_rgb_plain(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int n, uint8_t *dst)
{
    int16_t rgb[3][STRIP];
    for (int i = 0; i < n; i += STRIP) {
        convert(y + i, cb + i, cr + i, rgb);
        for (int k = 0; k < STRIP && i + k < n; k++, dst += 3) {
            dst[0] = (uint8_t)rgb[0][k];
            dst[1] = (uint8_t)rgb[1][k];
            dst[2] = (uint8_t)rgb[2][k];
        }
    }
}

void stk_jpeg_grey_rgb_plain(const uint8_t *y, int n, uint8_t *dst)
{
    for (int i = 0; i < n; i++, dst += 3)
        dst[0] = dst[1] = dst[2] = y[i];
}

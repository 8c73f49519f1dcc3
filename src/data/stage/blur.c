#include "data/stage/blur.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/simd.h"

enum { GROUP = 32 /* values */, MOST_HALF = STK_BLUR_MOST_KERNEL / 2 };

/* Eight floats at any address. */
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));

/* weight[k]: of the values k places from the middle, on both sides. */
static void get_weights(int half, double sigma, float *weight)
{
    double sum = 0, w[MOST_HALF + 1];
    for (int k = 0; k <= half; k++) {
        w[k] = exp(-0.5 * (k / sigma) * (k / sigma));
        sum += k ? 2 * w[k] : w[k];
    }
    for (int k = 0; k <= half; k++)
        weight[k] = (float)(w[k] / sum);
}

STK_SIMD_CLONES
static void widen(const uint8_t *restrict src, float *restrict dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)src[i];
}

STK_SIMD_CLONES
static void narrow(const float *restrict src, uint8_t *restrict dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(int)(src[i] + 0.5f);
}

#define AT(p) (*(const f32x8 *)(const void *)(p))

/* from [2 * half + 1]: what is mixed, the middle one in the middle. n values, in whole groups. */
STK_SIMD_CLONES
static void mix(const float *const *from, const float *weight, int half, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n; i += GROUP) {
        const float *p = from[half] + i;
        f32x8 a = AT(p) * weight[0], b = AT(p + 8) * weight[0], c = AT(p + 16) * weight[0], d = AT(p + 24) * weight[0];
        for (int k = 1; k <= half; k++) {
            const float *q = from[half - k] + i, *r = from[half + k] + i;
            float w = weight[k];
            a += (AT(q) + AT(r)) * w;
            b += (AT(q + 8) + AT(r + 8)) * w;
            c += (AT(q + 16) + AT(r + 16)) * w;
            d += (AT(q + 24) + AT(r + 24)) * w;
        }
        memcpy(dst + i, &a, sizeof(a));
        memcpy(dst + i + 8, &b, sizeof(b));
        memcpy(dst + i + 16, &c, sizeof(c));
        memcpy(dst + i + 24, &d, sizeof(d));
    }
}

static int64_t reflect(int64_t i, int64_t n)
{
    return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}

stk_status stk_blur(int kernel, double sigma, const uint8_t *src, uint8_t *dst, int64_t height, int64_t width,
                    int channels, stk_scratch *scratch)
{
    int half = kernel / 2;
    int64_t n = width * channels, side = (int64_t)half * channels, groups = (n + GROUP - 1) / GROUP * GROUP;
    const float *from[STK_BLUR_MOST_KERNEL];
    float weight[MOST_HALF + 1];
    /* The rows at work, row i in slot i % kernel; one that is mixed of them, with its sides; and the result. */
    size_t n_floats = (size_t)(groups * kernel + 2 * side + 2 * groups + groups);
    float *slots = stk_scratch_get(scratch, n_floats * sizeof(float));
    if (!slots) return STK_NO_MEMORY;
    float *middle = slots + groups * kernel + side, *result = middle + side + 2 * groups;
    memset(slots, 0, n_floats * sizeof(float)); /* whole groups are read */
    get_weights(half, sigma, weight);
    for (int64_t y = 0, n_made = 0; y < height; y++) {
        for (; n_made < height && n_made <= y + half; n_made++)
            widen(src + n_made * n, slots + n_made % kernel * groups, n);
        for (int k = -half; k <= half; k++)
            from[half + k] = slots + reflect(y + k, height) % kernel * groups;
        mix(from, weight, half, groups, middle);
        for (int64_t i = 1; i <= half; i++) {
            memcpy(middle - i * channels, middle + i * channels, (size_t)channels * sizeof(float));
            memcpy(middle + n + (i - 1) * channels, middle + n - (i + 1) * channels, (size_t)channels * sizeof(float));
        }
        for (int k = -half; k <= half; k++)
            from[half + k] = middle + k * channels;
        mix(from, weight, half, groups, result);
        narrow(result, dst + y * n, n);
    }
    return STK_OK;
}

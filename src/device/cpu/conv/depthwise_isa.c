/* Depthwise convolution: all channels of a pixel side by side, some vectors of them at a time in registers. */
#include "device/cpu/conv/depthwise.h"

#include "device/cpu/conv/conv2d_vec.h"

enum { STEP = 4 * LANES };

/* `n` vectors of channels from c on. */
static inline __attribute__((always_inline)) void pixel_block(const int n, int64_t c, const stk_depthwise_tap *taps,
                                                              int64_t n_taps, const float *x, const float *weights,
                                                              float *y)
{
    vec sum[4] = {{0}};
    for (int64_t t = 0; t < n_taps; t++) {
        const vec *from = (const vec *)(x + taps[t].x + c), *w = (const vec *)(weights + taps[t].weight + c);
#pragma GCC unroll 4
        for (int i = 0; i < n; i++)
            sum[i] += from[i] * w[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        ((vec *)(y + c))[i] = sum[i];
}

static void pixel(int64_t n_channels, const stk_depthwise_tap *taps, int64_t n_taps, const float *x,
                  const float *weights, float *y)
{
    int64_t c = 0;
    for (; c + STEP <= n_channels; c += STEP)
        pixel_block(4, c, taps, n_taps, x, weights, y);
    for (; c + LANES <= n_channels; c += LANES)
        pixel_block(1, c, taps, n_taps, x, weights, y);
    for (; c < n_channels; c++) {
        float sum = 0;
        for (int64_t t = 0; t < n_taps; t++)
            sum += x[taps[t].x + c] * weights[taps[t].weight + c];
        y[c] = sum;
    }
}

static inline __attribute__((always_inline)) void row_block(const int n_vecs, int64_t c, int64_t n_channels, int64_t n,
                                                            const float *x, int64_t x_step, const float *dy,
                                                            float *sums)
{
    vec sum[4];
#pragma GCC unroll 4
    for (int i = 0; i < n_vecs; i++)
        sum[i] = ((vec *)(sums + c))[i];
    for (int64_t k = 0; k < n; k++) {
        const vec *a = (const vec *)(x + k * x_step + c), *b = (const vec *)(dy + k * n_channels + c);
#pragma GCC unroll 4
        for (int i = 0; i < n_vecs; i++)
            sum[i] += a[i] * b[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < n_vecs; i++)
        ((vec *)(sums + c))[i] = sum[i];
}

static void row(int64_t n_channels, int64_t n, const float *x, int64_t x_step, const float *dy, float *sums)
{
    int64_t c = 0;
    for (; c + STEP <= n_channels; c += STEP)
        row_block(4, c, n_channels, n, x, x_step, dy, sums);
    for (; c + LANES <= n_channels; c += LANES)
        row_block(1, c, n_channels, n, x, x_step, dy, sums);
    for (; c < n_channels; c++)
        for (int64_t k = 0; k < n; k++)
            sums[c] += x[k * x_step + c] * dy[k * n_channels + c];
}

const stk_depthwise_fns STK_ISA_NAME(stk_depthwise) = {pixel, row};

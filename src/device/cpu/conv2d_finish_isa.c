/* See conv2d_finish.h. */
#include "device/cpu/conv2d_finish.h"

#include "device/cpu/conv2d_vec.h"

static inline float relu(float x)
{
    return x <= 0 ? 0 : x; /* A NaN stays one. */
}

static void rows_of(int64_t n_pixels, int64_t n, float *y, const float *bias, bool has_relu)
{
    for (int64_t i = 0; i < n_pixels; i++, y += n) {
        int64_t c = 0;
        for (; c + LANES <= n; c += LANES) {
            vec x = *(const vec *)(y + c);
            if (bias) x += *(const vec *)(bias + c);
            *(vec *)(y + c) = has_relu ? relu_of(x) : x;
        }
        for (; c < n; c++) {
            float x = bias ? y[c] + bias[c] : y[c];
            y[c] = has_relu ? relu(x) : x;
        }
    }
}

/* The compiler makes a loop of each. */
static void rows(int64_t n_pixels, int64_t n_channels, float *y, const float *bias, bool has_relu)
{
    if (bias && has_relu)
        rows_of(n_pixels, n_channels, y, bias, true);
    else if (bias)
        rows_of(n_pixels, n_channels, y, bias, false);
    else if (has_relu)
        rows_of(n_pixels, n_channels, y, NULL, true);
}

static void relu_bf16(int64_t n, uint16_t *y)
{
    enum { MINUS_ZERO = 0x8000, MINUS_INFINITY = 0xff80 }; /* and above that NaNs */
    for (int64_t i = 0; i < n; i++)
        y[i] = y[i] >= MINUS_ZERO && y[i] <= MINUS_INFINITY ? 0 : y[i];
}

const stk_conv_finish_fns STK_ISA_NAME(stk_conv_finish) = {rows, relu_bf16};

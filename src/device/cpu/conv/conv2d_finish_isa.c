/* See conv2d_finish.h. */
#include "device/cpu/conv/conv2d_finish.h"

#include "device/cpu/conv/conv2d_vec.h"
#include "device/cpu/simd/half.h"
#include "device/cpu/simd/half_vec.h"

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

/* A bias of fewer channels than a vector has lanes, as one of LANES pixels at once: returns to. */
static const float *repeat(int64_t n_channels, const float *bias, float *to)
{
    for (int64_t i = 0; i < LANES * n_channels; i++)
        to[i] = bias[i % n_channels];
    return to;
}

/* The compiler makes a loop of each. */
static void rows(int64_t n_pixels, int64_t n_channels, float *y, const float *bias, bool has_relu)
{
    float many[LANES * LANES];
    if (n_channels < LANES && n_pixels >= LANES) {
        int64_t n = n_pixels / LANES;
        rows(n, LANES * n_channels, y, bias ? repeat(n_channels, bias, many) : NULL, has_relu);
        n_pixels -= n * LANES;
        y += n * LANES * n_channels;
    }
    if (bias && has_relu)
        rows_of(n_pixels, n_channels, y, bias, true);
    else if (bias)
        rows_of(n_pixels, n_channels, y, bias, false);
    else if (has_relu)
        rows_of(n_pixels, n_channels, y, NULL, true);
}

static void rows_bf16(int64_t n_pixels, int64_t n, uint16_t *y, const float *bias, bool has_relu)
{
    float many[LANES * LANES];
    if (n < LANES && n_pixels >= LANES) {
        int64_t n_rows = n_pixels / LANES;
        rows_bf16(n_rows, LANES * n, y, repeat(n, bias, many), has_relu);
        n_pixels -= n_rows * LANES;
        y += n_rows * LANES * n;
    }
    for (int64_t i = 0; i < n_pixels; i++, y += n) {
        int64_t c = 0;
        for (; c + LANES <= n; c += LANES) {
            vec x = load_bf16(y + c) + *(const vec *)(bias + c);
            store_bf16(y + c, has_relu ? relu_of(x) : x);
        }
        for (; c < n; c++) {
            float x = bf16_to_f32(y[c]) + bias[c];
            y[c] = bf16_from_f32(has_relu ? relu(x) : x);
        }
    }
}

static void relu_bf16(int64_t n, uint16_t *y)
{
    enum { MINUS_ZERO = 0x8000, MINUS_INFINITY = 0xff80 }; /* and above that NaNs */
    for (int64_t i = 0; i < n; i++)
        y[i] = y[i] >= MINUS_ZERO && y[i] <= MINUS_INFINITY ? 0 : y[i];
}

const stk_conv_finish_fns STK_ISA_NAME(stk_conv_finish) = {rows, rows_bf16, relu_bf16};

/* See convolve.h. */
#include "device/play/convolve.h"

#include <stdlib.h>
#include <string.h>

#include "device/play/product.h"

static int64_t multiply(const int64_t *side, int n)
{
    return n ? side[0] * multiply(side + 1, n - 1) : 1;
}

int64_t play_convolution_count(const play_convolution *p, int i)
{
    switch (i) {
    case 0: return p->n_images * p->x_channels * multiply(p->x_side, p->n_sides);
    case 1: return p->y_channels * (p->x_channels / p->groups) * multiply(p->taps, p->n_sides);
    case 2: return p->n_images * p->y_channels * multiply(p->y_side, p->n_sides);
    default: return p->pass == PLAY_FORWARD ? p->y_channels : p->x_channels;
    }
}

/* Which of x, weight, y is written. */
static int target_of(const play_convolution *p)
{
    return p->pass == PLAY_FORWARD ? 2 : p->pass == PLAY_GRAD_DATA ? 0 : 1;
}

/* Zeros where it is what is written. */
static float *unpack(const play_convolution *p, int i)
{
    const int64_t n = play_convolution_count(p, i);
    float *out = calloc((size_t)n + 1, sizeof(float));
    if (!out) abort();
    for (int64_t j = 0; j < n && i != target_of(p); j++)
        out[j] = p->tf32 ? play_round_to_tf32(play_load(p->at[i], j, p->type)) : play_load(p->at[i], j, p->type);
    return out;
}

/* The pixel of x under tap i_tap of the window at pixel i_y, both of one image; -1: it is padding. */
static int64_t find_pixel(const play_convolution *p, int64_t i_y, int64_t i_tap)
{
    int64_t y[3], tap[3], pixel = 0;
    for (int i = p->n_sides - 1; i >= 0; i--) {
        y[i] = i_y % p->y_side[i];
        i_y /= p->y_side[i];
        tap[i] = i_tap % p->taps[i];
        i_tap /= p->taps[i];
    }
    for (int i = 0; i < p->n_sides; i++) {
        const int64_t x = y[i] * p->stride[i] + tap[i] * p->dilation[i] - p->pad_low[i];
        if (x < 0 || x >= p->x_side[i]) return -1;
        pixel = pixel * p->x_side[i] + x;
    }
    return pixel;
}

/* All channels of one pixel of y under one tap. */
static void visit(const play_convolution *p, float *x, float *weight, float *y, int64_t i_tap, int64_t n_taps)
{
    const int64_t c = p->x_channels / p->groups, o = p->y_channels / p->groups;
    for (int64_t i = 0; i < p->y_channels; i++) {
        float *px = x + i / o * c, *pw = weight + (i * n_taps + i_tap) * c, sum = 0;
        for (int64_t j = 0; j < c; j++) {
            if (p->pass == PLAY_FORWARD) sum += px[j] * pw[j];
            if (p->pass == PLAY_GRAD_DATA) px[j] += y[i] * pw[j];
            if (p->pass == PLAY_GRAD_WEIGHT) pw[j] += y[i] * px[j];
        }
        if (p->pass == PLAY_FORWARD) y[i] += sum;
    }
}

static void finish(const play_convolution *p, const float *sum)
{
    const int target = target_of(p);
    const int64_t channels = play_convolution_count(p, 3);
    for (int64_t i = 0, n = play_convolution_count(p, target); i < n; i++) {
        float value = sum[i];
        if (p->has_bias) value += play_load(p->at[3], i % channels, TYPE_F32);
        if (p->relu && value < 0) value = 0;
        play_store(p->at[target], i, p->type_out, value);
    }
}

void play_convolve(void *data)
{
    const play_convolution *p = data;
    const int64_t x_pixels = multiply(p->x_side, p->n_sides), y_pixels = multiply(p->y_side, p->n_sides);
    const int64_t n_taps = multiply(p->taps, p->n_sides);
    float *all[3] = {unpack(p, 0), unpack(p, 1), unpack(p, 2)};
    for (int64_t image = 0; image < p->n_images; image++)
        for (int64_t i_y = 0; i_y < y_pixels; i_y++)
            for (int64_t i_tap = 0; i_tap < n_taps; i_tap++) {
                const int64_t i_x = find_pixel(p, i_y, i_tap);
                if (i_x < 0) continue;
                visit(p, all[0] + (image * x_pixels + i_x) * p->x_channels, all[1],
                      all[2] + (image * y_pixels + i_y) * p->y_channels, i_tap, n_taps);
            }
    finish(p, all[target_of(p)]);
    for (int i = 0; i < 3; i++)
        free(all[i]);
}

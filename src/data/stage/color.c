/* Pixels are taken apart into planes of floats, a block at a time that stays in the first cache, and go through all
 * operations there. Only contrast needs the whole image before it goes on: its mean. */
#include "data/stage/color.h"

#include <stdbool.h>
#include <stddef.h>

#include "data/stage/simd.h"

enum { BLOCK = 512, PLANES = 3 };

typedef struct block {
    _Alignas(64) float x[PLANES][BLOCK];
    int n, channels;
} block;

/* --- in and out --- */

STK_SIMD_CLONES
static void load_rgb(const uint8_t *restrict src, int n, float *restrict r, float *restrict g, float *restrict b)
{
    for (int i = 0; i < n; i++) {
        r[i] = (float)src[3 * i];
        g[i] = (float)src[3 * i + 1];
        b[i] = (float)src[3 * i + 2];
    }
}

STK_SIMD_CLONES
static void store_rgb(const float *restrict r, const float *restrict g, const float *restrict b, int n,
                      uint8_t *restrict dst)
{
    for (int i = 0; i < n; i++) {
        dst[3 * i] = (uint8_t)(int)r[i];
        dst[3 * i + 1] = (uint8_t)(int)g[i];
        dst[3 * i + 2] = (uint8_t)(int)b[i];
    }
}

STK_SIMD_CLONES
static void load_grey(const uint8_t *restrict src, int n, float *restrict x)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)src[i];
}

STK_SIMD_CLONES
static void store_grey(const float *restrict x, int n, uint8_t *restrict dst)
{
    for (int i = 0; i < n; i++)
        dst[i] = (uint8_t)(int)x[i];
}

/* --- operations --- */

/* Within 0..255, cut to a whole number. */
static inline float whole(float x)
{
    int i = (int)x;
    i = i > 0 ? i : 0;
    return (float)(i < 255 ? i : 255);
}

static inline float grey_of(float r, float g, float b)
{
    return (float)(int)(r * 0.2989f + g * 0.587f + b * 0.114f);
}

/* x * a + b */
STK_SIMD_CLONES
static void affine(float *x, int n, float a, float b)
{
    for (int i = 0; i < n; i++)
        x[i] = whole(x[i] * a + b);
}

STK_SIMD_CLONES
static void saturate(float *restrict r, float *restrict g, float *restrict b, int n, float a, float rest)
{
    for (int i = 0; i < n; i++) {
        float grey = grey_of(r[i], g[i], b[i]) * rest;
        r[i] = whole(r[i] * a + grey);
        g[i] = whole(g[i] * a + grey);
        b[i] = whole(b[i] * a + grey);
    }
}

STK_SIMD_CLONES
static void make_grey(float *restrict r, float *restrict g, float *restrict b, int n)
{
    for (int i = 0; i < n; i++)
        r[i] = g[i] = b[i] = grey_of(r[i], g[i], b[i]);
}

/* The sum of greys, whole numbers, of at most BLOCK pixels. */
STK_SIMD_CLONES
static int32_t add_greys(const float *restrict r, const float *restrict g, const float *restrict b, int n)
{
    int32_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += (int32_t)(r[i] * 0.2989f + g[i] * 0.587f + b[i] * 0.114f);
    return sum;
}

/* One channel of a hue that is `sector` sixths round the circle from it; high and range are those of the pixel. Colours
 * that are fractions of 255 are cut as torchvision cuts them, at 255.999 levels. */
static inline float channel_of(float sector, float high, float range)
{
    sector = sector >= 6 ? sector - 6 : sector;
    float part = sector < 4 - sector ? sector : 4 - sector;
    part = part > 0 ? part : 0;
    part = part < 1 ? part : 1;
    return whole((high - range * part) * (255.999f / 255));
}

STK_SIMD_CLONES
static void turn_hue(float *restrict r, float *restrict g, float *restrict b, int n, float sectors)
{
    for (int i = 0; i < n; i++) {
        float x = r[i], y = g[i], z = b[i];
        float high = x > y ? x : y, low = x < y ? x : y;
        high = high > z ? high : z;
        low = low < z ? low : z;
        float range = high - low, by = range > 0 ? range : 1;
        float from_r = (y - z) / by, from_g = (z - x) / by + 2, from_b = (x - y) / by + 4;
        float hue = high == x ? from_r : high == y ? from_g : from_b;
        hue += sectors;
        hue = hue < 0 ? hue + 6 : hue;
        hue = hue >= 6 ? hue - 6 : hue;
        r[i] = channel_of(hue + 5, high, range);
        g[i] = channel_of(hue + 3, high, range);
        b[i] = channel_of(hue + 1, high, range);
    }
}

/* --- a block, an image --- */

static void apply_one(const stk_color_op *op, double mean, block *b)
{
    float rest = (float)(1 - (double)op->amount);
    bool is_rgb = b->channels == 3;
    switch (op->kind) {
    case STK_COLOR_BRIGHTNESS:
    case STK_COLOR_CONTRAST:
        for (int c = 0; c < b->channels; c++)
            affine(b->x[c], b->n, op->amount, op->kind == STK_COLOR_CONTRAST ? (float)mean * rest : 0);
        break;
    case STK_COLOR_SATURATION:
        if (is_rgb) saturate(b->x[0], b->x[1], b->x[2], b->n, op->amount, rest);
        break;
    case STK_COLOR_HUE:
        if (is_rgb) turn_hue(b->x[0], b->x[1], b->x[2], b->n, 6 * op->amount);
        break;
    case STK_COLOR_GRAYSCALE:
        if (is_rgb) make_grey(b->x[0], b->x[1], b->x[2], b->n);
        break;
    }
}

static int64_t sum_of_greys(const block *b)
{
    int64_t sum = 0;
    if (b->channels == 3) return add_greys(b->x[0], b->x[1], b->x[2], b->n);
    for (int i = 0; i < b->n; i++)
        sum += (int64_t)b->x[0][i];
    return sum;
}

/* The sum of greys after the operations, if wanted; dst NULL: nothing is kept. */
static int64_t pass(const stk_color_op *op, int n_ops, double mean, bool sum_wanted, const uint8_t *src, uint8_t *dst,
                    int64_t n, int channels)
{
    block b = {.channels = channels};
    int64_t sum = 0;
    for (int64_t at = 0; at < n; at += BLOCK, src += b.n * channels) {
        b.n = n - at < BLOCK ? (int)(n - at) : BLOCK;
        if (channels == 3)
            load_rgb(src, b.n, b.x[0], b.x[1], b.x[2]);
        else
            load_grey(src, b.n, b.x[0]);
        for (int i = 0; i < n_ops; i++)
            apply_one(&op[i], mean, &b);
        if (sum_wanted) sum += sum_of_greys(&b);
        if (!dst) continue;
        if (channels == 3)
            store_rgb(b.x[0], b.x[1], b.x[2], b.n, dst);
        else
            store_grey(b.x[0], b.n, dst);
        dst += b.n * channels;
    }
    return sum;
}

void stk_color_apply(const stk_color_op *op, int n_ops, const uint8_t *src, uint8_t *dst, int64_t n, int channels)
{
    double mean = 0;
    bool has_mean = false; /* for the contrast that comes next */
    while (true) {
        int end = has_mean ? 1 : 0;
        while (end < n_ops && op[end].kind != STK_COLOR_CONTRAST)
            end++;
        bool more = end < n_ops, only_looks = more && end == 0;
        int64_t sum = pass(op, end, mean, more, src, only_looks ? NULL : dst, n, channels);
        if (!more) return;
        if (!only_looks) src = dst;
        mean = (double)sum / (double)n;
        has_mean = true;
        op += end;
        n_ops -= end;
    }
}

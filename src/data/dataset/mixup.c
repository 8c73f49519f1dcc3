/* See data/dataset/mixup.h. Everything is in place: a few hundred elements of the last sample are set aside, then the
 * samples are gone through from the last to the first, each of which needs the one before it as it was. */
#include "data/dataset/mixup.h"

#include <math.h>
#include <string.h>

enum { PART = 512, RNG_STAGE = 1 << 20 /* no chain has that many stages */ };

/* --- the draws --- */

static double draw_share(stk_rng *rng)
{
    return ((double)stk_rng_u32(rng) + 0.5) * 0x1p-32;
}

/* The logarithm of a draw from Gamma(alpha, 1): Marsaglia & Tsang 2000, with their step from alpha + 1 for small
 * alpha. The logarithm does not underflow, as draws for an alpha of 0.01 do. */
static double draw_log_gamma(stk_rng *rng, double alpha)
{
    double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d), log_v;
    for (;;) {
        double x = (double)stk_rng_normal(rng), v = 1 + c * x;
        if (v <= 0) continue;
        log_v = 3 * log(v);
        if (log(draw_share(rng)) < 0.5 * x * x + d - d * exp(log_v) + d * log_v) break;
    }
    double result = log(d) + log_v;
    return alpha < 1 ? result + log(draw_share(rng)) / alpha : result;
}

double stk_mixup_beta(stk_rng *rng, double alpha)
{
    double a = draw_log_gamma(rng, alpha), b = draw_log_gamma(rng, alpha);
    return 1 / (1 + exp(b - a));
}

stk_mixup_draw stk_mixup_cut(double lambda, int64_t middle_y, int64_t middle_x, int64_t height, int64_t width)
{
    double r = 0.5 * sqrt(1 - lambda);
    int64_t half_h = (int64_t)(r * (double)height), half_w = (int64_t)(r * (double)width);
    int64_t top = middle_y - half_h, bottom = middle_y + half_h, left = middle_x - half_w, right = middle_x + half_w;
    top = top < 0 ? 0 : top;
    left = left < 0 ? 0 : left;
    bottom = bottom > height ? height : bottom;
    right = right > width ? width : right;
    double area = (double)((bottom - top) * (right - left)) / (double)(height * width);
    return (stk_mixup_draw){true, 1 - area, {top, left, bottom - top, right - left}};
}

/* --- what they do --- */

/* x is [n_rows, n]. */
static void mix_rows(float *x, int64_t n_rows, int64_t n, double lambda)
{
    float last[PART], keep = (float)lambda, take = (float)(1 - lambda);
    for (int64_t at = 0; at < n; at += PART) {
        int64_t part = n - at < PART ? n - at : PART;
        memcpy(last, x + (n_rows - 1) * n + at, (size_t)part * sizeof(*x));
        for (int64_t row = n_rows - 1; row >= 0; row--) {
            float *to = x + row * n + at;
            const float *from = row > 0 ? to - n : last;
            for (int64_t i = 0; i < part; i++)
                to[i] = from[i] * take + to[i] * keep;
        }
    }
}

/* Moves bytes at..at + n of each sample to the next one. */
static void roll_bytes(char *data, int64_t n_rows, size_t row_bytes, size_t at, size_t n)
{
    char last[4 * PART];
    for (size_t done = 0; done < n;) {
        size_t part = n - done < sizeof(last) ? n - done : sizeof(last);
        char *p = data + at + done;
        memcpy(last, p + (size_t)(n_rows - 1) * row_bytes, part);
        for (int64_t row = n_rows - 1; row > 0; row--)
            memcpy(p + (size_t)row * row_bytes, p + (size_t)(row - 1) * row_bytes, part);
        memcpy(p, last, part);
        done += part;
    }
}

static void cut_images(const stk_rect *rect, const stk_mixup_batch *b)
{
    const int64_t *dim = b->image_type.shape.dim;
    int64_t n_planes = b->channels_first ? dim[0] : 1, height = dim[b->channels_first],
            width = dim[1 + b->channels_first];
    size_t pixel = stk_dtype_bytes(b->image_type.dtype) * (size_t)(b->channels_first ? 1 : dim[2]);
    for (int64_t plane = 0; plane < n_planes; plane++)
        for (int64_t y = rect->top; y < rect->top + rect->height; y++)
            roll_bytes(b->image, b->n_rows, stk_desc_bytes(b->image_type),
                       (size_t)((plane * height + y) * width + rect->left) * pixel, (size_t)rect->width * pixel);
}

void stk_mixup_apply(const stk_mixup_draw *draw, const stk_mixup_batch *b)
{
    if (draw->is_cut)
        cut_images(&draw->rect, b);
    else
        mix_rows(b->image, b->n_rows, stk_shape_count(b->image_type.shape), draw->lambda);
    mix_rows(b->label, b->n_rows, b->n_classes, draw->lambda);
}

void stk_mixup_run(const stk_mixup *mixup, uint64_t seed, uint64_t epoch, uint64_t i_first, const stk_mixup_batch *b)
{
    stk_rng rng = stk_rng_make(seed, epoch, i_first, RNG_STAGE);
    const int64_t *dim = b->image_type.shape.dim;
    bool both = mixup->mixup_alpha > 0 && mixup->cutmix_alpha > 0, heads = stk_rng_u32(&rng) >> 31;
    bool is_cut = both ? heads : mixup->cutmix_alpha > 0;
    double lambda = stk_mixup_beta(&rng, is_cut ? mixup->cutmix_alpha : mixup->mixup_alpha);
    stk_mixup_draw draw = {false, lambda, {0}};
    if (is_cut) {
        int64_t height = dim[b->channels_first], width = dim[1 + b->channels_first];
        int64_t x = stk_rng_below(&rng, (uint32_t)width), y = stk_rng_below(&rng, (uint32_t)height);
        draw = stk_mixup_cut(lambda, y, x, height, width);
    }
    stk_mixup_apply(&draw, b);
}

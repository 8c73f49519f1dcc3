/* Convolution forward, and the gradient of data: a matrix product whose left side is read where it lies.
 *
 *   weights are packed into panels of COLS output channels, [tap][input channel][COLS]
 *   a tile is ROWS outputs of one class (conv2d_plan.h), anywhere in the image, times a panel, summed up in registers
 *   outputs are done BLOCK at a time, so that what they read stays in the L2 cache, and a panel's chunk in L1
 *
 * Blocks after Goto & van de Geijn 2008. Threads share the outputs of each class or, where those are few, the panels.
 */
#include <stdbool.h>
#include <string.h>

#include "device/cpu/conv/conv2d.h"
#include "device/cpu/conv/conv2d_finish.h"
#include "device/cpu/conv/conv2d_vec.h"
#include "device/cpu/threads/parallel.h"

enum { BLOCK = 16 * ROWS, DEPTH = 288 };

/* --- the tile --- */

/* y[y_at[i]][width] (+)= sum over segments; x_at and y_at are elements. */
static inline __attribute__((always_inline)) void tile(const int height, const float *x, const int64_t *x_at,
                                                       const stk_conv_segment *s, int64_t n, const float *panel,
                                                       float *y, const int64_t *y_at, int64_t width, bool adds)
{
    vec sum[8][2];
    /* Outputs come from memory while the sums are made: each tile has lines of its own. */
#pragma GCC unroll 8
    for (int i = 0; i < height; i++) {
        sum[i][0] = sum[i][1] = (vec){0};
        __builtin_prefetch(y + y_at[i], 1);
    }
    for (; n > 0; n--, s++) {
        const float *from[8], *w = panel + s->k * COLS;
#pragma GCC unroll 8
        for (int i = 0; i < height; i++)
            from[i] = x + (x_at[i] + s->x);
        for (int64_t l = 0; l < s->n; l++, w += COLS) {
            vec w0 = *(const vec *)w, w1 = *(const vec *)(w + LANES);
#pragma GCC unroll 8
            for (int i = 0; i < height; i++) {
                float v = from[i][l];
                sum[i][0] += v * w0;
                sum[i][1] += v * w1;
            }
        }
    }
    if (width < COLS) {
#pragma GCC unroll 8
        for (int i = 0; i < height; i++) {
            float whole[COLS], *to = y + y_at[i];
            *(vec *)whole = sum[i][0];
            *(vec *)(whole + LANES) = sum[i][1];
            for (int64_t j = 0; j < width; j++)
                to[j] = adds ? to[j] + whole[j] : whole[j];
        }
        return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < height; i++) {
        vec *to = (vec *)(y + y_at[i]), *next = (vec *)(y + y_at[i] + LANES);
        if (adds) {
            sum[i][0] += *to;
            sum[i][1] += *next;
        }
        *to = sum[i][0];
        *next = sum[i][1];
    }
}

/* n_tiles below each other. */
typedef void (*tiles_fn)(int64_t n_tiles, const float *x, const int64_t *x_at, const stk_conv_segment *s, int64_t n,
                         const float *panel, float *y, const int64_t *y_at, int64_t width, bool adds);

#define X(height)                                                                                                      \
    static void tiles_##height(int64_t n_tiles, const float *x, const int64_t *x_at, const stk_conv_segment *s,        \
                               int64_t n, const float *panel, float *y, const int64_t *y_at, int64_t width, bool adds) \
    {                                                                                                                  \
        for (; n_tiles > 0; n_tiles--, x_at += height, y_at += height)                                                 \
            tile(height, x, x_at, s, n, panel, y, y_at, width, adds);                                                  \
    }
STK_CONV_HEIGHTS(X)
#undef X
#define X(height) [height] = tiles_##height,
static const tiles_fn tiles[9] = {STK_CONV_HEIGHTS(X)};
#undef X

/* --- packing --- */

/* k rows of weights, step `in` apart, for `width` output channels, step `out` apart; zeros beyond them. */
static void pack_panel(const float *weight, int64_t in, int64_t out, int64_t k, int64_t width, float *to)
{
    int64_t l = 0;
    for (; l + 4 <= k && width == COLS && in == 1; l += 4)
        for (int64_t j = 0; j < COLS; j += 4)
            transpose4(weight + j * out + l, out, to + l * COLS + j, COLS);
    for (; l < k && width == COLS && out == 1; l++)
        memcpy(to + l * COLS, weight + l * in, COLS * sizeof(float));
    for (; l < k; l++)
        for (int64_t j = 0; j < COLS; j++)
            to[l * COLS + j] = j < width ? weight[l * in + j * out] : 0;
}

static const float *panel_of(const stk_conv_dense *d, const stk_conv_phase *phase, const float *packed, int64_t i)
{
    return packed + (phase->first_row * panels_of(d->c_out) + i * phase->n_rows) * COLS;
}

/* Panels [first, end) of every phase. */
static void pack(const stk_conv_dense *d, const float *weight, float *packed, int64_t first, int64_t end)
{
    for (const stk_conv_phase *phase = d->phases; phase < d->phases + d->n_phases; phase++) {
        const stk_conv_axis *ay = &phase->axis[0], *ax = &phase->axis[1];
        int64_t n_taps = ay->n_taps * ax->n_taps, c = d->c_in;
        /* Forward, all taps are one row. */
        bool is_plain = d->weight_in == 1;
        if (is_plain) c *= n_taps, n_taps = n_taps > 0;
        for (int64_t t = 0; t < n_taps; t++) {
            int64_t i = is_plain ? 0 : ay->tap_first + t / ax->n_taps * ay->tap_step;
            int64_t j = is_plain ? 0 : ax->tap_first + t % ax->n_taps * ax->tap_step;
            const float *from = weight + (i * d->kernel_w + j) * d->weight_tap;
            for (int64_t p = first; p < end; p++) {
                int64_t at = p * COLS, width = d->c_out - at < COLS ? d->c_out - at : COLS;
                float *to = packed + (panel_of(d, phase, packed, p) - packed) + t * c * COLS;
                pack_panel(from + at * d->weight_out, d->weight_in, d->weight_out, c, width, to);
            }
        }
    }
}

static size_t scratch_bytes(const stk_conv_dense *d)
{
    return (size_t)(d->n_rows * panels_of(d->c_out) * COLS) * sizeof(float);
}

/* --- all --- */

/* Where outputs [at, at + m) of a class read and write. */
static void find_outputs(const stk_conv_dense *d, const stk_conv_phase *phase, const stk_conv_class *class, int64_t at,
                         int64_t m, int64_t *x_at, int64_t *y_at)
{
    const stk_conv_axis *ay = &phase->axis[0], *ax = &phase->axis[1];
    int64_t n_x = class->x.end - class->x.begin, n_y = class->y.end - class->y.begin;
    int64_t col = at % n_x, row = at / n_x % n_y, image = at / n_x / n_y;
    for (int64_t i = 0; i < m; row++) {
        if (row == n_y) row = 0, image++;
        int64_t y = class->y.begin + row;
        int64_t x_row = image * d->in_image + (y * ay->stride - ay->pad) * d->in_row - ax->pad * d->c_in;
        int64_t y_row =
            image * d->out_image + (ay->out_first + y * ay->out_step) * d->out_row + ax->out_first * d->c_out;
        for (; col < n_x && i < m; col++, i++) {
            x_at[i] = x_row + (class->x.begin + col) * ax->stride * d->c_in;
            y_at[i] = y_row + (class->x.begin + col) * ax->out_step * d->c_out;
        }
        col = 0;
    }
}

/* Outputs without any tap. */
static void write_zeros(const stk_conv_dense *d, float *y, const int64_t *y_at, int64_t m, int64_t first, int64_t last)
{
    int64_t n = (last * COLS < d->c_out ? last * COLS : d->c_out) - first * COLS;
    for (int64_t i = 0; i < m; i++)
        memset(y + y_at[i] + first * COLS, 0, (size_t)n * sizeof(float));
}

/* m outputs of one panel, for the segments of a chunk. */
static void run_chunk(const stk_conv_dense *d, const stk_conv_chunk *chunk, int64_t m, const float *x,
                      const int64_t *x_at, const float *panel, float *y, const int64_t *y_at, int64_t width, bool adds)
{
    for (int64_t row = 0, height, n; row < m; row += n * height) {
        n = next_tiles(m - row, &height);
        tiles[height](n, x, x_at + row, d->segments + chunk->first, chunk->n, panel, y, y_at + row, width, adds);
    }
}

/* Bias and ReLU of m outputs, while they are in the cache. */
static void finish(const stk_conv_dense *d, const float *bias, float *y, const int64_t *y_at, int64_t m, int64_t first,
                   int64_t last)
{
    int64_t n = (last * COLS < d->c_out ? last * COLS : d->c_out) - first * COLS;
    for (int64_t i = 0; i < m; i++)
        STK_ISA_NAME(stk_conv_finish)
            .rows(1, n, y + y_at[i] + first * COLS, bias ? bias + first * COLS : NULL, d->has_relu);
}

/* Outputs [begin, end) of a class, for panels [first, last). */
static void run_class(const stk_conv_dense *d, const stk_conv_phase *phase, const stk_conv_class *class, const float *x,
                      const float *packed, const float *bias, float *y, int64_t begin, int64_t end, int64_t first,
                      int64_t last)
{
    int64_t x_at[BLOCK], y_at[BLOCK];
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t m = end - at < BLOCK ? end - at : BLOCK;
        find_outputs(d, phase, class, at, m, x_at, y_at);
        bool is_empty = class->n_chunks == 1 && !d->chunks[class->first_chunk].n;
        if (is_empty) write_zeros(d, y, y_at, m, first, last);
        /* A chunk against all panels: the inputs of whole columns of weights would not stay in the L2 cache. */
        for (int64_t i = 0; i < class->n_chunks && !is_empty; i++)
            for (int64_t p = first; p < last; p++)
                run_chunk(d, &d->chunks[class->first_chunk + i], m, x, x_at, panel_of(d, phase, packed, p),
                          y + p * COLS, y_at, d->c_out - p * COLS, i > 0);
        if (bias || d->has_relu) finish(d, bias, y, y_at, m, first, last);
    }
}

static void pack_share(const stk_conv_dense *d, const float *weight, void *scratch, int i_part, int n_parts)
{
    int64_t begin, end;
    stk_cpu_share(panels_of(d->c_out), 1, i_part, n_parts, &begin, &end);
    pack(d, weight, scratch, begin, end);
}

static void run_share(const stk_conv_dense *d, const float *x, const void *scratch, const float *bias, float *y,
                      int i_part, int n_parts)
{
    int64_t first = 0, last = panels_of(d->c_out), begin, end;
    int64_t n_outputs = d->n_images * (d->out_image / d->c_out);
    bool by_panels = n_outputs < 32 * ROWS * n_parts && last >= n_parts;
    if (by_panels) stk_cpu_share(last, 1, i_part, n_parts, &first, &last);
    for (const stk_conv_phase *phase = d->phases; phase < d->phases + d->n_phases; phase++) {
        for (int64_t i = 0; i < phase->n_classes; i++) {
            const stk_conv_class *class = &d->classes[phase->first_class + i];
            int64_t n = d->n_images * (class->y.end - class->y.begin) * (class->x.end - class->x.begin);
            begin = 0, end = n;
            if (!by_panels) stk_cpu_share(n, ROWS, i_part, n_parts, &begin, &end);
            run_class(d, phase, class, x, scratch, bias, y, begin, end, first, last);
        }
    }
}

const stk_conv_dense_fns STK_ISA_NAME(stk_conv_dense) = {DEPTH, scratch_bytes, pack_share, run_share};

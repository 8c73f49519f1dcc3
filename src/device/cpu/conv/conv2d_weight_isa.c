/* Gradient of a convolution's weights: a matrix product with one step for each output pixel, without im2col.
 *
 *   grad_dst of some image rows, a group, is packed into panels of COLS channels, [pixel][COLS]
 *   what the group reads of x is copied some channels at a time, pixels an odd number of cache lines apart: those of a
 *   power of two of channels would share a few sets of the L1 cache, and a slice's pixels would not stay there
 *   a tile is ROWS weights of a slice (conv2d_plan.h), whose x are side by side, times a panel, summed up in registers
 *   over the slice's pixels in the group; then it is added to sums laid out as [panel][weight][COLS]
 *   sums are transposed into grad_weight at the end
 *
 * Threads share the sums where the weights are many, by panels and blocks of channels; else they share the image rows,
 * each with its own sums, which are added up in the order of the threads.
 */
#include <stdbool.h>
#include <string.h>

#include "base/align.h"
#include "device/cpu/conv/conv2d.h"
#include "device/cpu/conv/conv2d_vec.h"
#include "device/cpu/simd/half.h"
#include "device/cpu/threads/parallel.h"

enum {
    GROUP = 128,   /* pixels: their x and grad_dst for one tile stay in the L1 cache */
    CHANNELS = 48, /* of x copied at a time: three cache lines */
    MANY_WEIGHTS = 1 << 16,
};

/* One multiplication: where its x begin, and its row of the packed panel; in elements. */
typedef struct point {
    int64_t x, row;
} point;

/* Output rows [y, end_y) of one image: what a group has of it. */
typedef struct part {
    int64_t image, y, end_y;
    int64_t in_y, end_in_y; /* rows of x under them */
} part;

/* --- the tile --- */

/* sums[height][COLS] += sum over points. */
static inline __attribute__((always_inline)) void tile(const int height, const float *x, const float *panel,
                                                       const point *points, int64_t n, float *sums)
{
    vec sum[8][2];
    /* The sums, which are many, come while the tile's own are made. */
#pragma GCC unroll 8
    for (int i = 0; i < height; i++) {
        sum[i][0] = sum[i][1] = (vec){0};
        __builtin_prefetch(sums + i * COLS, 1);
    }
    for (int64_t l = 0; l < n; l++) {
        const float *from = x + points[l].x, *row = panel + points[l].row;
        vec w0 = *(const vec *)row, w1 = *(const vec *)(row + LANES);
#pragma GCC unroll 8
        for (int i = 0; i < height; i++) {
            float v = from[i];
            sum[i][0] += v * w0;
            sum[i][1] += v * w1;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < height; i++) {
        *(vec *)(sums + i * COLS) += sum[i][0];
        *(vec *)(sums + i * COLS + LANES) += sum[i][1];
    }
}

/* n_tiles below each other. */
typedef void (*tiles_fn)(int64_t n_tiles, const float *x, const float *panel, const point *points, int64_t n,
                         float *sums);

#define X(height)                                                                                                      \
    static void tiles_##height(int64_t n_tiles, const float *x, const float *panel, const point *points, int64_t n,    \
                               float *sums)                                                                            \
    {                                                                                                                  \
        for (; n_tiles > 0; n_tiles--, x += height, sums += height * COLS)                                             \
            tile(height, x, panel, points, n, sums);                                                                   \
    }
STK_CONV_HEIGHTS(X)
#undef X
#define X(height) [height] = tiles_##height,
static const tiles_fn tiles[9] = {STK_CONV_HEIGHTS(X)};
#undef X

/* --- a group of rows --- */

static int64_t group_rows(const stk_conv_weight *w)
{
    return w->out_w < GROUP ? GROUP / w->out_w : 1;
}

static int64_t group_points(const stk_conv_weight *w)
{
    return group_rows(w) * w->out_w;
}

/* n elements of a row from `at` on, in f32. */
static inline void load(const stk_conv_weight *w, const void *row, int64_t at, int64_t n, float *to)
{
    const uint16_t *narrow = (const uint16_t *)row + at;
    if (w->dtype == STK_BF16) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            to[i] = bf16_to_f32(narrow[i]);
    } else if (w->dtype == STK_F16) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            to[i] = f16_to_f32(narrow[i]);
    } else {
        const float *from = (const float *)row + at;
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* Panels [first, last) of n pixels of grad_dst; some at a time, so that what is read lies side by side. */
static void pack(const stk_conv_weight *w, const void *grad_dst, int64_t at, int64_t n, int64_t first, int64_t last,
                 float *to)
{
    enum { SIDE_BY_SIDE = 4 };
    for (int64_t p = first, end; p < last; p = end) {
        end = p + SIDE_BY_SIDE < last ? p + SIDE_BY_SIDE : last;
        for (int64_t i = 0; i < n; i++)
            for (int64_t q = p; q < end; q++) {
                int64_t from = at + i * w->c_out + q * COLS;
                float *row = to + ((q - first) * n + i) * COLS;
                int64_t width = w->c_out - q * COLS;
                if (width >= COLS)
                    load(w, grad_dst, from, COLS, row);
                else
                    load(w, grad_dst, from, width, row);
                for (int64_t j = width; j < COLS; j++)
                    row[j] = 0;
            }
    }
}

/* The part of rows [begin, end) of all images' output rows that begins them. */
static part next_part(const stk_conv_weight *w, int64_t begin, int64_t end)
{
    part p = {.image = begin / w->out_h, .y = begin % w->out_h};
    p.end_y = w->out_h - p.y < end - begin ? w->out_h : p.y + end - begin;
    p.in_y = p.y * w->stride_y + w->first_y;
    p.end_in_y = (p.end_y - 1) * w->stride_y + w->last_y + 1;
    p.in_y = p.in_y < 0 ? 0 : p.in_y;
    p.end_in_y = p.end_in_y > w->in_h ? w->in_h : p.end_in_y;
    if (p.end_in_y < p.in_y) p.end_in_y = p.in_y;
    return p;
}

/* Rows of x that the parts of a group have at most. */
static int64_t copied_rows(const stk_conv_weight *w)
{
    int64_t rows = group_rows(w), n_parts = (rows - 1) / w->out_h + 2, more = w->last_y - w->first_y + 1;
    return rows * w->stride_y + n_parts * (more > w->stride_y ? more - w->stride_y : 0);
}

/* With a constant number the loop needs no tail. */
static inline void copy_channels(const stk_conv_weight *w, const void *x, int64_t at, int64_t n, float *to)
{
    if (n == CHANNELS)
        load(w, x, at, CHANNELS, to);
    else
        load(w, x, at, n, to);
}

/* n channels from `from` on of what rows [begin, end) read. */
static void copy_x(const stk_conv_weight *w, const void *x, int64_t begin, int64_t end, int64_t from, int64_t n,
                   float *copy)
{
    for (part p; begin < end; begin += p.end_y - p.y) {
        p = next_part(w, begin, end);
        for (int64_t y = p.in_y; y < p.end_in_y; y++) {
            int64_t at = p.image * w->in_image + y * w->in_row + from;
            for (int64_t i = 0; i < w->in_w; i++, at += w->in_pixel, copy += CHANNELS)
                copy_channels(w, x, at, n, copy);
        }
    }
}

/* The slice's pixels in rows [begin, end); returns how many. */
static int64_t find_points(const stk_conv_weight *w, const stk_conv_slice *s, int64_t begin, int64_t end, point *to)
{
    int64_t n = 0, x_row = w->in_w * CHANNELS, step = w->stride_x * CHANNELS, row = 0, copied = 0;
    for (part p; begin < end; begin += p.end_y - p.y) {
        p = next_part(w, begin, end);
        for (int64_t y = p.y; y < p.end_y; y++, row += w->out_w * COLS) {
            if (y < s->y || y >= s->end_y) continue;
            int64_t x = (copied - p.in_y + y * w->stride_y + s->in_y) * x_row + s->in_x * CHANNELS;
            for (int64_t i = s->x; i < s->end_x; i++)
                to[n++] = (point){x + i * step, row + i * COLS};
        }
        copied += p.end_in_y - p.in_y;
    }
    return n;
}

/* n weights of each slice, channels from `from` on, against panels [first, last); x is the copy. */
static void multiply(const stk_conv_weight *w, const float *x, const float *packed, int64_t n_pixels,
                     const point *points, const int64_t *n_points, int64_t from, int64_t n, int64_t first, int64_t last,
                     float *sums)
{
    for (int64_t p = first; p < last; p++) {
        const float *panel = packed + (p - first) * n_pixels * COLS;
        for (int64_t i = 0; i < w->n_slices; i++) {
            float *into = sums + (p * w->n_rows + w->slices[i].k + from) * COLS;
            for (int64_t k = 0, height, n_tiles; k < n && n_points[i]; k += n_tiles * height) {
                n_tiles = next_tiles(n - k, &height);
                tiles[height](n_tiles, x + k, panel, points + i * group_points(w), n_points[i], into + k * COLS);
            }
        }
    }
}

/* --- memory --- */

/* A thread's own scratch memory, and the sums; in elements, multiples of a cache line. */
typedef struct layout {
    int64_t points, n_points, copy, packed, own, sums;
} layout;

static layout lay_out(const stk_conv_weight *w)
{
    layout l = {.points = 0};
    l.n_points = stk_round_up_i64(group_points(w) * w->n_slices * (int64_t)(sizeof(point) / sizeof(float)), 16);
    l.copy = l.n_points + stk_round_up_i64(w->n_slices * (int64_t)(sizeof(int64_t) / sizeof(float)), 16);
    l.packed = l.copy + stk_round_up_i64(copied_rows(w) * w->in_w * CHANNELS, 16);
    l.own = stk_cpu_apart_floats(l.packed + stk_round_up_i64(panels_of(w->c_out) * group_points(w) * COLS, 16));
    l.sums = stk_cpu_apart_floats(stk_round_up_i64(panels_of(w->c_out) * w->n_rows * COLS, 16));
    return l;
}

static int64_t n_blocks(const stk_conv_weight *w)
{
    return (w->c_in + CHANNELS - 1) / CHANNELS;
}

static bool shares_sums(const stk_conv_weight *w, int n_parts)
{
    int64_t n = panels_of(w->c_out) * n_blocks(w), most = (n + n_parts - 1) / n_parts;
    return w->n_rows * w->c_out >= MANY_WEIGHTS && 10 * n >= 8 * most * n_parts;
}

/* Sums of all parts together, or of each. */
static int64_t sums_of(const stk_conv_weight *w, int n_parts)
{
    return shares_sums(w, n_parts) ? 1 : n_parts;
}

static size_t scratch_bytes(const stk_conv_weight *w, int n_parts)
{
    layout l = lay_out(w);
    return (size_t)(sums_of(w, n_parts) * l.sums + n_parts * l.own) * sizeof(float);
}

/* --- the end --- */

/* Sums of rows [begin, end) to grad_weight; those of n_sums parts are added up. */
static void finish(const stk_conv_weight *w, float *sums, int n_sums, int64_t begin, int64_t end, float *grad_weight)
{
    enum { STEP = 16 };
    int64_t n = lay_out(w).sums;
    for (int64_t p = 0; p < panels_of(w->c_out); p++) {
        int64_t width = w->c_out - p * COLS < COLS ? w->c_out - p * COLS : COLS;
        for (int64_t k = begin; k < end; k += STEP) {
            int64_t height = end - k < STEP ? end - k : STEP;
            float *from = sums + (p * w->n_rows + k) * COLS, *to = grad_weight + p * COLS * w->n_rows + k;
            for (int i = 1; i < n_sums; i++)
                for (int64_t j = 0; j < height * COLS; j += LANES)
                    *(vec *)(from + j) += *(const vec *)(from + i * n + j);
            for (int64_t j = 0; j < width; j += 4)
                for (int64_t i = 0; i < height; i += 4) {
                    if (j + 4 <= width && i + 4 <= height) {
                        transpose4(from + i * COLS + j, COLS, to + j * w->n_rows + i, w->n_rows);
                        continue;
                    }
                    for (int64_t b = j; b < width && b < j + 4; b++)
                        for (int64_t a = i; a < height && a < i + 4; a++)
                            to[b * w->n_rows + a] = from[a * COLS + b];
                }
        }
    }
}

/* --- all --- */

/* Rows [begin, end) of all images' output rows. Pieces of the sums are numbered by panel, then by block: those in
 * [first, last). */
static void run_rows(const stk_conv_weight *w, const void *x, const void *grad_dst, int64_t begin, int64_t end,
                     int64_t first, int64_t last, float *own, float *sums)
{
    layout l = lay_out(w);
    int64_t blocks = n_blocks(w), first_panel = first / blocks, last_panel = (last + blocks - 1) / blocks;
    point *points = (point *)(own + l.points);
    int64_t *n_points = (int64_t *)(own + l.n_points);
    for (int64_t r = begin, r_end; r < end && first < last; r = r_end) {
        r_end = end - r < group_rows(w) ? end : r + group_rows(w);
        int64_t n_pixels = (r_end - r) * w->out_w;
        float *packed = own + l.packed;
        pack(w, grad_dst, r * w->out_w * w->c_out, n_pixels, first_panel, last_panel, packed);
        for (int64_t i = 0; i < w->n_slices; i++)
            n_points[i] = find_points(w, &w->slices[i], r, r_end, points + i * group_points(w));
        for (int64_t i = 0; i < blocks; i++) {
            /* Panels p with first <= p * blocks + i < last. */
            int64_t p = first_panel + (first_panel * blocks + i < first);
            int64_t p_end = last_panel - ((last_panel - 1) * blocks + i >= last), from = i * CHANNELS;
            int64_t n = w->c_in - from < CHANNELS ? w->c_in - from : CHANNELS;
            if (p >= p_end) continue;
            copy_x(w, x, r, r_end, from, n, own + l.copy);
            multiply(w, own + l.copy, packed + (p - first_panel) * n_pixels * COLS, n_pixels, points, n_points, from, n,
                     p, p_end, sums);
        }
    }
}

static void clear_share(const stk_conv_weight *w, void *scratch, int i_part, int n_parts)
{
    int64_t begin, end;
    stk_cpu_share(sums_of(w, n_parts) * lay_out(w).sums, COLS, i_part, n_parts, &begin, &end);
    memset((float *)scratch + begin, 0, (size_t)(end - begin) * sizeof(float));
}

static void run_share(const stk_conv_weight *w, const void *x, const void *grad_dst, void *scratch, int i_part,
                      int n_parts)
{
    layout l = lay_out(w);
    int64_t n_sums = sums_of(w, n_parts), begin = 0, end = w->n_images * w->out_h;
    int64_t first = 0, last = panels_of(w->c_out) * n_blocks(w);
    float *own = (float *)scratch + n_sums * l.sums + i_part * l.own;
    if (n_sums == 1)
        stk_cpu_share(last, 1, i_part, n_parts, &first, &last);
    else
        stk_cpu_share(end, 1, i_part, n_parts, &begin, &end);
    run_rows(w, x, grad_dst, begin, end, first, last, own, (float *)scratch + (n_sums == 1 ? 0 : i_part * l.sums));
}

static void finish_share(const stk_conv_weight *w, void *scratch, float *grad_weight, int i_part, int n_parts)
{
    int64_t begin, end;
    stk_cpu_share(w->n_rows, 4, i_part, n_parts, &begin, &end);
    finish(w, scratch, (int)sums_of(w, n_parts), begin, end, grad_weight);
}

const stk_conv_weight_fns STK_ISA_NAME(stk_conv_weight) = {scratch_bytes, clear_share, run_share, finish_share};

/* See conv2d_weight_point.h. A packed matrix product after Goto & van de Geijn 2008, for a long sum over pixels:
 *
 *   a group of pixels at a time: grad_dst is packed into tiles of ROWS channels, [pixel][ROWS], and x into panels of
 *   COLS channels, [pixel][COLS], 16-bit floats becoming f32 on the way
 *   a block of tiles stays in the L2 cache, a panel in L1; a tile of sums ROWS x COLS is made in registers and added to
 *   those of the groups before, [panel][row][COLS], which are side by side so that they come and go in whole lines
 *   meanwhile the next group is fetched into L2, since packing it would wait for memory all the time
 */
#include <stdbool.h>
#include <string.h>

#include "device/cpu/conv/conv2d_vec.h"
#include "device/cpu/conv/conv2d_weight_point.h"
#include "device/cpu/simd/half.h"
#include "device/cpu/threads/parallel.h"

enum {
    GROUP = 256,     /* pixels */
    BLOCK = 96,      /* rows of a block of tiles: 96 KiB */
    GRAIN = 96,      /* rows of a part, a multiple of any tile's, and columns, of any panel's */
    SIDE_BY_SIDE = 8 /* tiles or panels that are packed at a time, so that whole lines are used while they are there */
};

/* --- the tile --- */

/* sums[height][COLS] (+)= tile times panel over n pixels. */
static inline __attribute__((always_inline)) void multiply(const int height, int64_t n, const float *tile,
                                                           const float *panel, float *sums, bool adds)
{
    vec sum[8][2];
#pragma GCC unroll 8
    for (int i = 0; i < height; i++) {
        sum[i][0] = sum[i][1] = (vec){0};
        __builtin_prefetch(sums + i * COLS, 1);
    }
    for (int64_t l = 0; l < n; l++, tile += height, panel += COLS) {
        vec w0 = *(const vec *)panel, w1 = *(const vec *)(panel + LANES);
#pragma GCC unroll 8
        for (int i = 0; i < height; i++) {
            float v = tile[i];
            sum[i][0] += v * w0;
            sum[i][1] += v * w1;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < height; i++) {
        vec *to = (vec *)(sums + i * COLS), *next = (vec *)(sums + i * COLS + LANES);
        if (adds) {
            sum[i][0] += *to;
            sum[i][1] += *next;
        }
        *to = sum[i][0];
        *next = sum[i][1];
    }
}

typedef void (*multiply_fn)(int64_t n, const float *tile, const float *panel, float *sums, bool adds);

#define X(height)                                                                                                      \
    static void multiply_##height(int64_t n, const float *tile, const float *panel, float *sums, bool adds)            \
    {                                                                                                                  \
        multiply(height, n, tile, panel, sums, adds);                                                                  \
    }
STK_CONV_HEIGHTS(X)
#undef X
#define X(height) [height] = multiply_##height,
static const multiply_fn multiplies[9] = {STK_CONV_HEIGHTS(X)};
#undef X

/* --- packing --- */

/* n elements of 16 or 32 bits from `at` on, in f32; of whole lines the number is constant where it is called. */
static inline __attribute__((always_inline)) void load(stk_dtype dtype, const void *from, int64_t at, int64_t n,
                                                       float *to)
{
    if (dtype == STK_F32) {
        memcpy(to, (const float *)from + at, (size_t)n * sizeof(float));
        return;
    }
    const uint16_t *narrow = (const uint16_t *)from + at;
    for (int64_t i = 0; i < n; i++)
        to[i] = dtype == STK_BF16 ? bf16_to_f32(narrow[i]) : f16_to_f32(narrow[i]);
}

/* Element where pixel i of x begins. */
static int64_t x_at(const stk_conv_weight *w, int64_t i)
{
    bool is_dense = w->in_row == w->out_w * w->in_pixel && w->in_image == w->out_h * w->in_row;
    if (is_dense) return i * w->in_pixel;
    int64_t col = i % w->out_w, row = i / w->out_w;
    return row / w->out_h * w->in_image + row % w->out_h * w->in_row + col * w->in_pixel;
}

/* Channels [first, first + m) of grad_dst's pixels [begin, begin + n), as tiles below each other. */
static void pack_tiles(const stk_conv_weight *w, const void *grad_dst, int64_t begin, int64_t n, int64_t first,
                       int64_t m, float *to)
{
    for (int64_t at = 0, height, left; at < m; at += left * height) {
        left = next_tiles(m - at, &height);
        if (left > SIDE_BY_SIDE) left = SIDE_BY_SIDE;
        for (int64_t l = 0; l < n; l++) {
            int64_t from = (begin + l) * w->c_out + first + at;
            float *row = to + at * n + l * height;
            for (int64_t t = 0; t < left; t++, from += height, row += n * height) {
                if (height == ROWS)
                    load(w->dtype, grad_dst, from, ROWS, row);
                else
                    load(w->dtype, grad_dst, from, height, row);
            }
        }
    }
}

/* Channels [first, first + m) of x's pixels, as panels, with zeros beyond the last. */
static void pack_panels(const stk_conv_weight *w, const void *x, int64_t begin, int64_t n, int64_t first, int64_t m,
                        float *to)
{
    for (int64_t p = 0, end; p < panels_of(m); p = end) {
        end = p + SIDE_BY_SIDE / 2 < panels_of(m) ? p + SIDE_BY_SIDE / 2 : panels_of(m);
        for (int64_t l = 0; l < n; l++) {
            int64_t from = x_at(w, begin + l) + first;
            for (int64_t q = p; q < end; q++) {
                float *row = to + (q * n + l) * COLS;
                int64_t width = m - q * COLS;
                if (width >= COLS) {
                    load(w->dtype, x, from + q * COLS, COLS, row);
                    continue;
                }
                load(w->dtype, x, from + q * COLS, width, row);
                memset(row + width, 0, (size_t)(COLS - width) * sizeof(float));
            }
        }
    }
}

/* --- fetching what comes next --- */

/* What one part does. */
typedef struct part {
    const stk_conv_weight *w;
    const char *x, *grad_dst;
    int64_t row, n_rows, col, n_cols; /* of grad_weight */
    int64_t begin, end;               /* pixels */
    float *tiles, *panels, *sums;     /* sums: of all rows, from the part's first panel on */
    int64_t fetched, fetch_end;       /* pixels of the next group */
    double fetch_to, fetch_step;      /* how far this tile's call gets, and how much farther the next one */
} part;

static inline void fetch_lines(const char *from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(from + i, 0, 2);
}

/* A tile's share of the next group's pixels: what the part reads of grad_dst and x. */
static inline void fetch(part *p)
{
    const stk_conv_weight *w = p->w;
    int64_t bytes = w->dtype == STK_F32 ? 4 : 2;
    p->fetch_to += p->fetch_step;
    for (; p->fetched < p->fetch_end && (double)p->fetched < p->fetch_to; p->fetched++) {
        fetch_lines(p->grad_dst + (p->fetched * w->c_out + p->row) * bytes, p->n_rows * bytes);
        fetch_lines(p->x + (x_at(w, p->fetched) + p->col) * bytes, p->n_cols * bytes);
    }
}

static void start_fetching(part *p, int64_t begin)
{
    p->fetched = begin;
    p->fetch_end = p->end - begin < GROUP ? p->end : begin + GROUP;
    p->fetch_to = (double)begin;
    p->fetch_step = (double)(p->fetch_end - begin) / (double)((p->n_rows / ROWS + 1) * panels_of(p->n_cols));
}

/* --- all --- */

/* Rows [from, from + m) of a part against all its panels, over n pixels. */
static void multiply_block(part *p, int64_t from, int64_t m, int64_t n, bool adds)
{
    for (int64_t q = 0; q < panels_of(p->n_cols); q++) {
        const float *panel = p->panels + q * n * COLS;
        float *sums = p->sums + (q * p->w->c_out + p->row + from) * COLS;
        for (int64_t at = 0, height, left; at < m;)
            for (left = next_tiles(m - at, &height); left > 0; left--, at += height) {
                fetch(p);
                multiplies[height](n, p->tiles + at * n, panel, sums + at * COLS, adds);
            }
    }
}

static void run_part(part *p)
{
    for (int64_t at = p->begin; at < p->end; at += GROUP) {
        int64_t n = p->end - at < GROUP ? p->end - at : GROUP, next = at + n;
        start_fetching(p, next);
        pack_panels(p->w, p->x, at, n, p->col, p->n_cols, p->panels);
        for (int64_t from = 0; from < p->n_rows; from += BLOCK) {
            int64_t m = p->n_rows - from < BLOCK ? p->n_rows - from : BLOCK;
            pack_tiles(p->w, p->grad_dst, at, n, p->row + from, m, p->tiles);
            multiply_block(p, from, m, n, at > p->begin);
        }
    }
}

/* A part's own memory, in elements: a block of tiles, then panels. */
static int64_t own_elements(const stk_conv_weight *w)
{
    return stk_cpu_apart_floats(GROUP * (BLOCK + panels_of(w->c_in) * COLS));
}

static int64_t sums_elements(const stk_conv_weight *w)
{
    return stk_cpu_apart_floats(panels_of(w->c_in) * w->c_out * COLS);
}

static size_t scratch_bytes(const stk_conv_weight *w, stk_conv_point_cut cut)
{
    int64_t n_parts = (int64_t)cut.rows * cut.cols * cut.depth;
    return (size_t)(n_parts * own_elements(w) + cut.depth * sums_elements(w)) * sizeof(float);
}

static void run_share(const stk_conv_weight *w, stk_conv_point_cut cut, const void *x, const void *grad_dst,
                      void *scratch, int i_part)
{
    int n_parts = cut.rows * cut.cols * cut.depth, i_depth = i_part % cut.depth, i_grid = i_part / cut.depth;
    float *own = (float *)scratch + i_part * own_elements(w), *all = (float *)scratch + n_parts * own_elements(w);
    int64_t end;
    part p = {.w = w, .x = x, .grad_dst = grad_dst, .tiles = own, .panels = own + GROUP * BLOCK};
    stk_cpu_share(w->c_out, GRAIN, i_grid / cut.cols, cut.rows, &p.row, &end);
    p.n_rows = end - p.row;
    stk_cpu_share(w->c_in, GRAIN, i_grid % cut.cols, cut.cols, &p.col, &end);
    p.n_cols = end - p.col;
    stk_cpu_share(w->n_images * w->out_h * w->out_w, 1, i_depth, cut.depth, &p.begin, &p.end);
    p.sums = all + i_depth * sums_elements(w) + p.col * w->c_out;
    if (p.n_rows && p.n_cols) run_part(&p);
}

/* Sums into grad_weight; those of all depths are added up. */
static void finish_share(const stk_conv_weight *w, stk_conv_point_cut cut, const void *scratch, float *grad_weight,
                         int i_part, int n_parts)
{
    const float *all = (const float *)scratch + (int64_t)cut.rows * cut.cols * cut.depth * own_elements(w);
    int64_t begin, end;
    stk_cpu_share(w->c_out, 1, i_part, n_parts, &begin, &end);
    for (int64_t q = 0; q < panels_of(w->c_in); q++) {
        int64_t width = w->c_in - q * COLS < COLS ? w->c_in - q * COLS : COLS;
        for (int64_t i = begin; i < end; i++) {
            float sum[COLS];
            const float *from = all + (q * w->c_out + i) * COLS;
            memcpy(sum, from, sizeof(sum));
            for (int d = 1; d < cut.depth; d++)
                for (int j = 0; j < COLS; j++)
                    sum[j] += from[d * sums_elements(w) + j];
            memcpy(grad_weight + i * w->c_in + q * COLS, sum, (size_t)width * sizeof(float));
        }
    }
}

const stk_conv_point_weight_fns STK_ISA_NAME(stk_conv_point_weight) = {scratch_bytes, run_share, finish_share};

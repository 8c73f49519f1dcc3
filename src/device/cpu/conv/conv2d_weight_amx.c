/* grad_weight [O,KH,KW,C] = the sum over all pixels of grad_dst [pixel,O] times x [pixel under the tap,C], by tiles.
 *
 * A tile takes 32 pixels at once: the same few pixels of a row, 1 to 16 of them, in each of 32 to 2 images, whichever
 * leaves less of the tiles empty. So a tap reads whole 64-byte rows of packed x, from another row on
 * (amx/amx_weights.h), and with one pixel of 32 images no padding is multiplied at all. With a horizontal stride,
 * columns of x are packed by their remainder. A 1x1 convolution without a stride takes each pixel as an image of its
 * own.
 *
 *     x         [C / 16][groups of images][rows][remainder][columns][images / 2][16][2]
 *     grad_dst  [O / 16][groups of images][rows][tiles][16][16][2]
 *     sums      [O / 32][C / 32][KH,KW][2][2][16][16], of a thread, while there are more pixels to come
 *
 * Pixels are taken in units: of one side all channels of a unit are packed and held in the second-level cache, those of
 * the other come by in blocks, and each block of sums is complete for the unit. Threads share the channels of one side
 * or the units, or both; sums of units are added up in the order of the threads.
 *
 * Of few channels, those under all taps of a row are taken as the channels of one tap: they lie side by side.
 *
 * Nothing is fetched ahead: a few prefetches for each tile slowed the products by more than packing gained.
 *
 * Zeros stand for padding and for pixels that fill up a tile, so that an infinite number next to them can make NaN of
 * sums that would not meet it.
 */
#include "device/cpu/conv/conv2d_weight_amx.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "device/cpu/amx/amx.h"
#include "device/cpu/conv/conv2d_shape.h"

/* Bytes of packed pixels of a unit; what keeps channels apart in the sets of the first-level cache, in elements. */
enum { UNIT_BYTES = 1280 << 10, SKEW = 32, BLOCK = STK_AMX_CHANNELS, SUMS = BLOCK * BLOCK };

/* How channels of a pixel lie in memory; steps in elements. */
typedef struct amx_side {
    int64_t n_channels, image, row, pixel, n_rows, n_cols;
    int64_t row_tiles, unit_rows, unit_bytes; /* packed: in a row; rows of a unit; bytes of a unit for 16 channels */
} amx_side;

typedef struct amx_weight_state {
    const stk_amx_fns *fns;
    int n_threads, n_parts, n_shares; /* threads; parts of the units, and of one side's channels */
    int64_t n_images, out_height, out_width, kernel_h, kernel_w;
    int64_t stride_y, stride_x, pad_y, pad_x;
    int64_t step_y;           /* input rows from a packed one to the next */
    int64_t fold_pad, fold_w; /* folded taps: elements of padding before a row, and of a row; 0: none are */
    int64_t group, cols;      /* images and pixels of a row of a tile: 32 together */
    int64_t n_groups, phase_tiles, n_phases;
    amx_side x, grad;
    bool holds_x, shares_x;
    int64_t groups, rows, n_blocks_y, n_units; /* of a unit; in all */
    int64_t coming;                            /* channels of a block */
    size_t part_bytes, sums_bytes;             /* of a thread's packed pixels, of its sums */
    const uint16_t *zeros;                     /* as many as there are channels */
} amx_weight_state;

typedef struct amx_unit {
    int64_t first_group, n_groups, first_row, n_rows;
} amx_unit;

typedef struct amx_task {
    const amx_weight_state *s;
    const stk_kernel_args *args;
} amx_task;

/* A thread's work: channels of both sides, and where it packs them. */
typedef struct amx_part {
    const amx_weight_state *s;
    const uint16_t *x, *grad;
    int64_t c, c_end, o, o_end;
    uint16_t *packed_x, *packed_grad;
    float *sums, *out;
} amx_part;

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static amx_unit find_unit(const amx_weight_state *s, int64_t i)
{
    int64_t group = i / s->n_blocks_y * s->groups, row = i % s->n_blocks_y * s->rows;
    return (amx_unit){group, min_of(s->groups, s->n_groups - group), row, min_of(s->rows, s->out_height - row)};
}

/* --- packing --- */

typedef struct amx_pixels {
    const uint16_t *at[STK_AMX_PIXELS];
    uint16_t edge[STK_AMX_PIXELS][BLOCK]; /* folded taps of which some are padding */
} amx_pixels;

/* Folded taps from element `at` of a row on. */
static const uint16_t *find_folded(const amx_weight_state *s, const uint16_t *row, int64_t at, uint16_t *edge)
{
    int64_t n = s->x.n_channels, begin = at < 0 ? -at : 0, end = min_of(n, s->fold_w - at);
    if (begin == 0 && end == n) return row + at;
    memset(edge, 0, BLOCK * sizeof(*edge));
    if (begin < end) memcpy(edge + begin, row + at + begin, (size_t)(end - begin) * sizeof(*edge));
    return edge;
}

/* The pixels of one tile, in columns col, col + step and on; false: there are none. */
static bool find_pixels(const amx_weight_state *s, const amx_side *side, const uint16_t *row, int64_t image,
                        int64_t col, int64_t step, amx_pixels *p)
{
    int64_t n_images = min_of(s->group, s->n_images - image);
    bool folds = s->fold_w && side == &s->x, has_some = false;
    const uint16_t **at = p->at;
    for (int64_t i = 0; i < s->cols; i++, col += step) {
        bool exists = col >= 0 && col < side->n_cols;
        const uint16_t *pixel = row + image * side->image;
        int64_t n = exists ? n_images : 0, from = col * side->pixel - (folds ? s->fold_pad : 0);
        for (int64_t k = 0; k < n; k++, pixel += side->image)
            at[k] = folds ? find_folded(s, pixel, from, p->edge[at + k - p->at]) : pixel + from;
        for (int64_t k = n; k < s->group; k++)
            at[k] = s->zeros;
        at += s->group;
        has_some = has_some || exists;
    }
    return has_some || s->cols > 1;
}

/* Channels [begin, end) of x under a unit. */
static void pack_x(const amx_part *p, amx_unit u, int64_t begin, int64_t end)
{
    const amx_weight_state *s = p->s;
    amx_pixels pixels;
    int64_t tile = s->x.unit_bytes / (int64_t)sizeof(uint16_t);
    for (int64_t g = 0; g < u.n_groups; g++)
        for (int64_t i = 0; i < (u.n_rows - 1) * (s->stride_y / s->step_y) + s->kernel_h; i++) {
            int64_t y = u.first_row * s->stride_y + i * s->step_y - s->pad_y, image = (u.first_group + g) * s->group;
            uint16_t *to = p->packed_x + (g * s->x.unit_rows + i) * s->x.row_tiles * STK_AMX_TILE;
            if (y < 0 || y >= s->x.n_rows) continue;
            for (int64_t t = 0; t < s->x.row_tiles; t++, to += STK_AMX_TILE) {
                int64_t col = t % s->phase_tiles * s->cols * s->stride_x + t / s->phase_tiles - s->pad_x;
                if (find_pixels(s, &s->x, p->x + y * s->x.row + begin, image, col, s->stride_x, &pixels))
                    s->fns->weights->pack(pixels.at, end - begin, false, to, tile);
            }
        }
}

static void pack_grad(const amx_part *p, amx_unit u, int64_t begin, int64_t end)
{
    const amx_weight_state *s = p->s;
    amx_pixels pixels;
    int64_t tile = s->grad.unit_bytes / (int64_t)sizeof(uint16_t);
    for (int64_t g = 0; g < u.n_groups; g++)
        for (int64_t i = 0; i < u.n_rows; i++) {
            int64_t y = u.first_row + i, image = (u.first_group + g) * s->group;
            uint16_t *to = p->packed_grad + (g * s->grad.unit_rows + i) * s->grad.row_tiles * STK_AMX_TILE;
            for (int64_t t = 0; t < s->grad.row_tiles; t++, to += STK_AMX_TILE)
                if (find_pixels(s, &s->grad, p->grad + y * s->grad.row + begin, image, t * s->cols, 1, &pixels))
                    s->fns->weights->pack(pixels.at, end - begin, true, to, tile);
        }
}

/* --- products --- */

/* Output positions [begin, end) whose tap lies in n_in pixels; [0, 0) where there are none, since positions become
 * tiles. */
static void find_inside(int64_t n_out, int64_t n_in, int64_t stride, int64_t shift, int64_t *begin, int64_t *end)
{
    *begin = shift < 0 ? div_up(-shift, stride) : 0;
    *end = n_in > shift ? min_of(n_out, div_up(n_in - shift, stride)) : 0;
    if (*end <= *begin) *begin = *end = 0;
}

typedef struct amx_range {
    int64_t begin, end;
} amx_range;

/* One block of sums: output channels from o on, and input channels from c on, which are channels i_o and i_c of those
 * that are packed. */
static void sum_block(const amx_part *p, amx_unit u, int64_t tap, int64_t o, int64_t i_o, int64_t c, int64_t i_c,
                      bool is_first, bool is_last)
{
    const amx_weight_state *s = p->s;
    int64_t r = tap / s->kernel_w, q = tap % s->kernel_w, taps = s->kernel_h * s->kernel_w;
    amx_range rows, cols;
    find_inside(s->out_height, s->x.n_rows, s->stride_y, r - s->pad_y, &rows.begin, &rows.end);
    find_inside(s->out_width, s->x.n_cols, s->stride_x, q - s->pad_x, &cols.begin, &cols.end);
    rows.begin = max_of(rows.begin - u.first_row, 0), rows.end = min_of(rows.end - u.first_row, u.n_rows);
    cols.begin = cols.begin / s->cols, cols.end = div_up(cols.end, s->cols);
    const int64_t x_row = s->x.row_tiles * STK_AMX_TILE, grad_row = s->grad.row_tiles * STK_AMX_TILE;
    const int64_t in_row = rows.begin * (s->stride_y / s->step_y) + r;
    stk_amx_sum g = {.a_tile = s->grad.unit_bytes / 2,
                     .b_tile = s->x.unit_bytes / 2,
                     .n_groups = u.n_groups,
                     .n_rows = max_of(rows.end - rows.begin, 0),
                     .n_tiles = cols.end - cols.begin,
                     .a_group = s->grad.unit_rows * grad_row,
                     .a_row = grad_row,
                     .b_group = s->x.unit_rows * x_row,
                     .b_row = s->stride_y / s->step_y * x_row};
    g.a = p->packed_grad + i_o / 16 * g.a_tile + rows.begin * grad_row + cols.begin * STK_AMX_TILE;
    g.b = p->packed_x + i_c / 16 * g.b_tile + in_row * x_row +
          (q % s->stride_x * s->phase_tiles + cols.begin) * STK_AMX_TILE +
          q / s->stride_x * (s->group / 2) * STK_AMX_PIXELS;
    /* Rows without gaps are one. */
    if (g.n_tiles * STK_AMX_TILE == g.a_row && g.a_row == g.b_row) g.n_tiles *= g.n_rows, g.n_rows = 1;
    if (g.n_rows == 1 && g.n_tiles * STK_AMX_TILE == g.a_group && g.a_group == g.b_group)
        g.n_tiles *= g.n_groups, g.n_groups = 1;
    float *sums = p->sums + ((o / BLOCK * div_up(s->x.n_channels, BLOCK) + c / BLOCK) * taps + tap) * SUMS;
    g.from = is_first ? NULL : sums;
    g.to = sums;
    if (is_last && s->n_parts == 1) {
        g.to = p->out + (o * taps + tap) * s->x.n_channels + c;
        g.to_row = taps * s->x.n_channels;
        g.n_o = min_of(BLOCK, p->o_end - o), g.n_c = min_of(BLOCK, p->c_end - c);
    }
    s->fns->weights->sum(&g);
}

/* Sums of all channels of the side that is held with some of the other. */
static void sum_blocks(const amx_part *p, amx_unit u, int64_t begin, int64_t end, bool is_first, bool is_last)
{
    const amx_weight_state *s = p->s;
    int64_t held = s->holds_x ? p->c : p->o, held_end = s->holds_x ? p->c_end : p->o_end;
    s->fns->weights->begin();
    for (int64_t i = begin; i < end; i += BLOCK)
        for (int64_t j = held; j < held_end; j += BLOCK)
            for (int64_t tap = 0; tap < s->kernel_h * s->kernel_w; tap++) {
                if (s->holds_x)
                    sum_block(p, u, tap, i, i - begin, j, j - held, is_first, is_last);
                else
                    sum_block(p, u, tap, j, j - held, i, i - begin, is_first, is_last);
            }
    s->fns->weights->end();
}

static void pack(const amx_part *p, amx_unit u, bool is_x, int64_t begin, int64_t end)
{
    if (is_x)
        pack_x(p, u, begin, end);
    else
        pack_grad(p, u, begin, end);
}

static void run_unit(const amx_part *p, amx_unit u, bool is_first, bool is_last)
{
    const amx_weight_state *s = p->s;
    int64_t held = s->holds_x ? p->c : p->o, held_end = s->holds_x ? p->c_end : p->o_end;
    int64_t begin = s->holds_x ? p->o : p->c, end = s->holds_x ? p->o_end : p->c_end;
    pack(p, u, s->holds_x, held, held_end);
    for (int64_t i = begin; i < end; i += s->coming) {
        int64_t i_end = min_of(end, i + s->coming);
        pack(p, u, !s->holds_x, i, i_end);
        sum_blocks(p, u, i, i_end, is_first, is_last);
    }
}

/* --- sharing --- */

static char *sums_of_part(const amx_weight_state *s, const stk_kernel_args *args, int i_part)
{
    return (char *)args->scratch + s->part_bytes * (size_t)(s->n_parts * s->n_shares) + s->sums_bytes * (size_t)i_part;
}

static void run_share(const void *p, int i_part, int n_parts)
{
    const amx_task *task = p;
    const amx_weight_state *s = task->s;
    const int i_units = i_part / s->n_shares, i_share = i_part % s->n_shares;
    amx_part part = {.s = s, .x = task->args->in[0], .grad = task->args->in[1], .out = task->args->out[0]};
    int64_t begin, end;
    (void)n_parts;
    stk_cpu_share(s->x.n_channels, BLOCK, s->shares_x ? i_share : 0, s->shares_x ? s->n_shares : 1, &part.c,
                  &part.c_end);
    stk_cpu_share(s->grad.n_channels, BLOCK, s->shares_x ? 0 : i_share, s->shares_x ? 1 : s->n_shares, &part.o,
                  &part.o_end);
    if (part.c == part.c_end || part.o == part.o_end) return;
    int64_t n_x = s->holds_x ? stk_round_up_i64(part.c_end - part.c, BLOCK) : s->coming;
    part.packed_x = (uint16_t *)(void *)((char *)task->args->scratch + s->part_bytes * (size_t)i_part);
    part.packed_grad = part.packed_x + n_x / 16 * (s->x.unit_bytes / 2);
    part.sums = (float *)(void *)sums_of_part(s, task->args, i_units);
    stk_cpu_share(s->n_units, 1, i_units, s->n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        run_unit(&part, find_unit(s, i), i == begin, i + 1 == end);
}

/* Adds a part's row of a block of sums to what it is to become. */
static void add_rows(const float *from, bool adds, int64_t n_o, int64_t n_c, float *to, int64_t to_row)
{
    for (int64_t i = 0; i < n_o; i++, to += to_row)
        for (int64_t j = 0; j < n_c; j++) {
            float x = from[(i / 16 * 2 + j / 16) * 256 + i % 16 * 16 + j % 16];
            to[j] = adds ? to[j] + x : x;
        }
}

static void add_share(const void *p, int i_part, int n_parts)
{
    const amx_task *task = p;
    const amx_weight_state *s = task->s;
    int64_t begin, end, taps = s->kernel_h * s->kernel_w, c = s->x.n_channels, n_c = div_up(c, BLOCK);
    stk_cpu_share(div_up(s->grad.n_channels, BLOCK) * n_c * taps, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t i_o = i / taps / n_c * BLOCK, i_c = i / taps % n_c * BLOCK;
        bool adds = false;
        for (int part = 0; part < s->n_parts; part++) {
            int64_t first, last;
            stk_cpu_share(s->n_units, 1, part, s->n_parts, &first, &last);
            if (first == last) continue;
            const float *from = (const float *)(const void *)sums_of_part(s, task->args, part) + i * SUMS;
            add_rows(from, adds, min_of(BLOCK, s->grad.n_channels - i_o), min_of(BLOCK, c - i_c),
                     (float *)task->args->out[0] + (i_o * taps + i % taps) * c + i_c, taps * c);
            adds = true;
        }
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const amx_weight_state *s = p;
    amx_task task = {s, args};
    stk_cpu_parallel(s->n_parts * s->n_shares, run_share, &task);
    if (s->n_parts > 1) stk_cpu_parallel(s->n_threads, add_share, &task);
    return STK_OK;
}

/* --- making --- */

static void set_shape(amx_weight_state *s, const stk_conv_shape *shape)
{
    const stk_window *w = &shape->window;
    s->n_images = shape->x.dim[0], s->out_height = shape->y.dim[1], s->out_width = shape->y.dim[2];
    s->kernel_h = shape->weight.dim[1], s->kernel_w = shape->weight.dim[2];
    s->stride_y = w->stride[0], s->stride_x = w->stride[1], s->pad_y = w->pad_low[0], s->pad_x = w->pad_low[1];
    int64_t c = shape->x.dim[3], o = shape->y.dim[3], width = shape->x.dim[2], height = shape->x.dim[1];
    s->x = (amx_side){c, height * width * c, width * c, c, height, width, 0, 0, 0};
    s->grad =
        (amx_side){o, s->out_height * s->out_width * o, s->out_width * o, o, s->out_height, s->out_width, 0, 0, 0};
    if (stk_conv_is_point(shape) && s->stride_y == 1 && s->stride_x == 1) {
        s->n_images *= height * width;
        s->x.image = s->x.row = c, s->grad.image = s->grad.row = o;
        s->out_height = s->out_width = s->x.n_rows = s->x.n_cols = s->grad.n_rows = s->grad.n_cols = 1;
    }
    if (s->kernel_w > 1 && s->kernel_w * c <= BLOCK) {
        s->fold_pad = s->pad_x * c, s->fold_w = width * c;
        s->x.n_channels = s->kernel_w * c, s->x.pixel = s->stride_x * c, s->x.n_cols = s->out_width;
        s->kernel_w = s->stride_x = 1, s->pad_x = 0;
    }
    s->step_y = s->kernel_h == 1 ? s->stride_y : 1;
}

static void set_tiles(amx_weight_state *s)
{
    int64_t least = INT64_MAX;
    for (int64_t cols = 1; cols <= STK_AMX_PIXELS / 2; cols *= 2) {
        int64_t n = div_up(s->out_width, cols) * div_up(s->n_images, STK_AMX_PIXELS / cols);
        if (n <= least) least = n, s->cols = cols;
    }
    s->group = STK_AMX_PIXELS / s->cols;
    s->n_groups = div_up(s->n_images, s->group);
    s->grad.row_tiles = div_up(s->out_width, s->cols);
    s->n_phases = min_of(s->stride_x, s->kernel_w);
    s->phase_tiles = div_up(s->grad.row_tiles * s->cols + (s->kernel_w - 1) / s->stride_x, s->cols);
    s->x.row_tiles = s->n_phases * s->phase_tiles;
}

/* Bytes of a unit for 16 channels. */
static void size_unit(amx_weight_state *s, int64_t groups, int64_t rows)
{
    const int64_t skew = SKEW * (int64_t)sizeof(uint16_t);
    s->groups = groups, s->rows = rows;
    s->x.unit_rows = (rows - 1) * (s->stride_y / s->step_y) + s->kernel_h, s->grad.unit_rows = rows;
    s->x.unit_bytes = groups * s->x.unit_rows * s->x.row_tiles * STK_AMX_TILE_BYTES + skew;
    s->grad.unit_bytes = groups * rows * s->grad.row_tiles * STK_AMX_TILE_BYTES + skew;
}

static bool unit_fits(const amx_weight_state *s, int64_t c, int64_t o)
{
    int64_t x = s->holds_x ? c : min_of(c, s->coming), grad = s->holds_x ? min_of(o, s->coming) : o;
    return div_up(x, 16) * s->x.unit_bytes + div_up(grad, 16) * s->grad.unit_bytes <= UNIT_BYTES;
}

/* Units as large as the cache allows, and as many for each part. c, o: channels of a share. */
static void set_units(amx_weight_state *s, int64_t c, int64_t o)
{
    int64_t n = 1;
    size_unit(s, 1, s->out_height);
    for (; !unit_fits(s, c, o) && s->rows > 1; n++)
        size_unit(s, 1, div_up(s->out_height, n + 1));
    if (s->rows < s->out_height) {
        while (s->n_groups * div_up(s->out_height, s->rows) % s->n_parts && s->rows > 1)
            size_unit(s, 1, s->rows - 1);
    } else {
        int64_t most = 1;
        while (most < s->n_groups && unit_fits(s, c, o))
            size_unit(s, ++most, s->rows);
        if (!unit_fits(s, c, o) && most > 1) most--;
        int64_t turns = div_up(s->n_groups, most * s->n_parts);
        size_unit(s, div_up(s->n_groups, turns * s->n_parts), s->rows);
        if (s->n_groups < s->n_parts) size_unit(s, 1, div_up(s->out_height, div_up(s->n_parts, s->n_groups)));
    }
    s->n_blocks_y = div_up(s->out_height, s->rows);
    s->n_units = div_up(s->n_groups, s->groups) * s->n_blocks_y;
}

/* About the cycles of the part that has most to do. */
static double cost_of(const amx_weight_state *s, int64_t c, int64_t o)
{
    enum { MULTIPLY = 18, PACK_X = 60, PACK_GRAD = 110, LOAD = 250, VISIT = 200, FAR_VISIT = 1000, ADD = 1000 };
    enum { NEAR_SUMS = 512 << 10 };
    double units = (double)div_up(s->n_units, s->n_parts), tiles = (double)(s->groups * s->rows * s->grad.row_tiles);
    double x_tiles = (double)(s->groups * s->x.unit_rows * s->x.row_tiles);
    double c_tiles = (double)div_up(c, BLOCK) * 2, o_tiles = (double)div_up(o, BLOCK) * 2;
    double sums = c_tiles * o_tiles / 4 * (double)(s->kernel_h * s->kernel_w);
    /* What comes by in short pieces is slow to load. */
    double slow = s->coming >= (s->holds_x ? o : c) ? 1 : 1 + 20.0 / (double)s->coming;
    double packing = x_tiles * c_tiles * (PACK_X + LOAD * (s->holds_x ? 1 : slow));
    packing += tiles * o_tiles * (PACK_GRAD + LOAD * (s->holds_x ? slow : 1));
    double multiplying = tiles * sums * 4 * MULTIPLY;
    double visits = sums * (sums * SUMS * sizeof(float) <= NEAR_SUMS ? VISIT : FAR_VISIT);
    double cost = units * (multiplying + packing + visits);
    if (s->n_parts > 1) cost += sums * ADD * (1 + 1.0 / s->n_shares);
    return cost;
}

/* The most that stk_cpu_share gives one of n. */
static int64_t most_of_share(int64_t n_channels, int64_t n)
{
    return min_of(n_channels, div_up(div_up(n_channels, BLOCK), n) * BLOCK);
}

static size_t set_plan(amx_weight_state *s)
{
    amx_weight_state best = *s;
    double least = -1;
    int64_t c = 0, o = 0;
    for (int i = 0; i < 16 * s->n_threads; i++) {
        amx_weight_state tried = *s;
        tried.holds_x = i & 1, tried.shares_x = i & 2;
        tried.n_shares = i / 16 + 1, tried.n_parts = s->n_threads / tried.n_shares;
        int64_t most_c = most_of_share(s->x.n_channels, tried.shares_x ? tried.n_shares : 1);
        int64_t most_o = most_of_share(s->grad.n_channels, tried.shares_x ? 1 : tried.n_shares);
        int64_t all = stk_round_up_i64(tried.holds_x ? most_o : most_c, BLOCK);
        tried.coming = i / 4 % 4 == 3 ? all : min_of(all, (int64_t)BLOCK << i / 4 % 4);
        set_units(&tried, most_c, most_o);
        if (!unit_fits(&tried, most_c, most_o) && least >= 0) continue;
        double cost = cost_of(&tried, most_c, most_o);
        if (least >= 0 && cost >= least) continue;
        least = cost, best = tried, c = most_c, o = most_o;
    }
    *s = best;
    int64_t x = div_up(s->holds_x ? c : s->coming, BLOCK) * 2, grad = div_up(s->holds_x ? s->coming : o, BLOCK) * 2;
    s->part_bytes = (size_t)stk_cpu_apart(x * s->x.unit_bytes + grad * s->grad.unit_bytes);
    if (s->n_parts > 1 || s->n_units > 1)
        s->sums_bytes = (size_t)(div_up(s->x.n_channels, BLOCK) * div_up(s->grad.n_channels, BLOCK) * s->kernel_h *
                                 s->kernel_w * SUMS) *
                        sizeof(float);
    return s->part_bytes * (size_t)(s->n_parts * s->n_shares) + s->sums_bytes * (size_t)s->n_parts;
}

bool stk_conv_weight_amx_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    enum { LEAST = 16, LEAST_FOLDED = 9 };
    if (call->in[0].dtype != STK_BF16 || call->in[1].dtype != STK_BF16 || call->out[0].dtype != STK_F32) return false;
    stk_conv_shape s = stk_conv_shape_of(call);
    const stk_window *w = &s.window;
    if (s.pass != STK_CONV_GRAD_WEIGHT || s.x.rank != 4 || w->groups != 1) return false;
    if (w->dilation[0] != 1 || w->dilation[1] != 1) return false;
    int64_t c = s.x.dim[3], folded = c * s.weight.dim[2];
    return (c >= LEAST || (folded >= LEAST_FOLDED && folded <= BLOCK)) && s.y.dim[3] >= LEAST &&
           stk_amx_of(device->isa);
}

stk_status stk_conv_weight_amx_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_conv_shape shape = stk_conv_shape_of(call);
    int64_t n = stk_round_up_i64(max_of(max_of(shape.x.dim[3], shape.y.dim[3]), BLOCK), BLOCK);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(amx_weight_state) + (size_t)n * sizeof(uint16_t), run, out));
    amx_weight_state *s = out->state;
    *s = (amx_weight_state){.fns = stk_amx_of(device->isa), .n_threads = device->base.n_threads};
    s->zeros = (const uint16_t *)(const void *)(s + 1);
    set_shape(s, &shape);
    set_tiles(s);
    out->scratch_bytes = set_plan(s);
    out->impl = stk_amx_impl(s->fns);
    return STK_OK;
}

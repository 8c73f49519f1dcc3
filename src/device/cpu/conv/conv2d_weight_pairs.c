/* grad_weight [O,KH,KW,C] = the sum over all pixels of grad_dst [pixel,O] times x [pixel under the tap,C].
 *
 * The sum's products come in twos, and those of the same pixel of two images are taken together: then every tap reads
 * the same pairs, only from another pixel on. Padding is zeros here. Pixels are taken in units, whose pairs stay in the
 * second-level cache: some rows of two images, or some twos of whole small images.
 *
 *     x         [C / 32][rows and padding][columns and padding][32]      one chunk is in the first-level cache
 *     grad_dst  [O / 12][pixels][12]                                     comes by once for each chunk and tap
 *     sums      [O,KH,KW,C]                                              12 x 32 of them in registers
 *
 * Where weights are few, threads share the units, and each has sums of its own that are added up in the order of the
 * threads; those of the first are the result. Where they are many, two threads share the channels of the side that has
 * more, and each makes the pairs that it needs: those of the other side are made twice, but no thread waits for
 * another, and pairs stay in its own cache. More threads share the output channels, and all pairs of some units are
 * made before.
 */
#include "device/cpu/conv/conv2d_weight_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "device/cpu/conv/conv2d_pairs.h"
#include "device/cpu/conv/conv2d_shape.h"

/* Pixels of a unit; bytes of a thread's own sums, or of those of all in scratch memory; of pairs that threads share;
 * threads that share channels. */
enum { UNIT_PIXELS = 256, OWN_SUMS = 640 << 10, ALL_SUMS = 5 << 19, SHARED_PAIRS = 4 << 20, FEW_THREADS = 2 };

typedef enum pairs_way { SHARE_UNITS, SHARE_CHANNELS, SHARE_PAIRS } pairs_way;

typedef struct pairs_state {
    const stk_pairs_fns *fns;
    int n_threads;
    int64_t n_images, height, width, c, out_height, out_width, o, kernel_h, kernel_w;
    int64_t x_pixel, grad_pixel; /* elements from one to the next: c and o, but where these are a thread's share */
    int64_t stride_y, stride_x, pad_y, pad_x;
    int64_t step_y, step_x;              /* input pixels from a packed one to the next */
    int64_t twos, rows;                  /* of images and output rows of a unit; more than one of twos: all rows */
    int64_t in_rows, in_cols;            /* packed, of a two of images */
    int64_t n_twos, n_blocks_y, n_units; /* in all */
    int64_t chunk_step, tile_step;       /* pairs of a chunk; pixels of a tile */
    size_t unit_bytes, part_bytes;       /* of pairs; of a thread's block of scratch memory */
    pairs_way way;
    int64_t units_at_once; /* SHARE_PAIRS */
} pairs_state;

typedef struct pairs_unit {
    int64_t first_two, n_twos, first_row, n_rows;
} pairs_unit;

typedef struct pairs_task {
    const pairs_state *s;
    const stk_kernel_args *args;
    int64_t first_unit, n_units; /* packed: SHARE_PAIRS */
} pairs_task;

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static pairs_unit find_unit(const pairs_state *s, int64_t i)
{
    int64_t two = i / s->n_blocks_y * s->twos, row = i % s->n_blocks_y * s->rows;
    return (pairs_unit){two, min_of(s->twos, s->n_twos - two), row, min_of(s->rows, s->out_height - row)};
}

/* --- pairs --- */

static uint32_t *grads_of(const pairs_state *s, uint32_t *unit)
{
    return unit + s->c / STK_PAIRS_CHUNK * s->chunk_step;
}

static void clear_pixels(const pairs_state *s, uint32_t *to, int64_t n)
{
    for (int64_t c = 0; n > 0 && c < s->c; c += STK_PAIRS_CHUNK, to += s->chunk_step)
        memset(to, 0, (size_t)n * STK_PAIRS_CHUNK * sizeof(*to));
}

/* One packed row of a two of images, with zeros for the padding. */
static void join_row(const pairs_state *s, const uint16_t *x, int64_t two, int64_t y, uint32_t *to)
{
    int64_t row = s->width * s->x_pixel, image = s->height * row;
    if (y < 0 || y >= s->height) {
        clear_pixels(s, to, s->in_cols);
        return;
    }
    /* Packed columns [begin, end) lie inside the image. */
    int64_t begin = min_of(s->pad_x, s->in_cols);
    int64_t end = min_of(s->in_cols, (s->width + s->pad_x + s->step_x - 1) / s->step_x);
    if (end < begin) end = begin;
    const uint16_t *first = x + 2 * two * image + y * row + (begin * s->step_x - s->pad_x) * s->x_pixel;
    clear_pixels(s, to, begin);
    if (end > begin)
        s->fns->join(first, 2 * two + 1 < s->n_images ? first + image : NULL, end - begin, s->step_x * s->x_pixel, s->c,
                     to + begin * STK_PAIRS_CHUNK, s->chunk_step);
    clear_pixels(s, to + end * STK_PAIRS_CHUNK, s->in_cols - end);
}

/* A share of the unit's rows. */
static void join_unit(const pairs_state *s, const stk_kernel_args *args, pairs_unit u, uint32_t *unit, int i_part,
                      int n_parts)
{
    const uint16_t *x = args->in[0], *grad = args->in[1];
    uint32_t *grads = grads_of(s, unit);
    int64_t begin, end, grad_row = s->out_width * s->grad_pixel, grad_image = s->out_height * grad_row;
    stk_cpu_share(u.n_twos * s->in_rows, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t y = (u.first_row * s->stride_y) + i % s->in_rows * s->step_y - s->pad_y;
        join_row(s, x, u.first_two + i / s->in_rows, y, unit + i * s->in_cols * STK_PAIRS_CHUNK);
    }
    stk_cpu_share(u.n_twos * u.n_rows, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t image = 2 * (u.first_two + i / u.n_rows);
        const uint16_t *first = grad + image * grad_image + (u.first_row + i % u.n_rows) * grad_row;
        s->fns->join_tiles(first, image + 1 < s->n_images ? first + grad_image : NULL, s->out_width, s->grad_pixel,
                           s->o, grads, s->tile_step, i * s->out_width);
    }
}

/* --- what comes next --- */

enum { N_RANGES = 4, LINE = 64 };

/* Pixels, the first n_lines of each. */
typedef struct pairs_range {
    const char *from;
    int64_t n_pixels, pixel_bytes, n_lines, line;
} pairs_range;

/* Memory that is to be fetched into the cache, some lines at a time, while products are computed. */
typedef struct pairs_ahead {
    pairs_range range[N_RANGES];
    int64_t lines_a_call;
    int i_range;
} pairs_ahead;

static void add_range(pairs_ahead *a, int i, const uint16_t *from, int64_t n_pixels, int64_t pixel, int64_t n_channels)
{
    const int64_t size = sizeof(*from);
    pairs_range *r = &a->range[i];
    *r = (pairs_range){(const char *)from, n_pixels, pixel * size, (n_channels * size + LINE - 1) / LINE, 0};
    if (pixel == n_channels) r->n_pixels = 1, r->n_lines = n_pixels * pixel * size / LINE;
}

/* What join_unit will read: rows of two images, or images one after the other. */
static pairs_ahead look_ahead(const pairs_state *s, const stk_kernel_args *args, pairs_unit u, int64_t n_calls)
{
    pairs_ahead a = {.i_range = 0};
    const uint16_t *x = args->in[0], *grad = args->in[1];
    int64_t image = 2 * u.first_two, n_lines = 0;
    int64_t n_images = min_of(2 * u.n_twos, s->n_images - image);
    int64_t y = u.first_row * s->stride_y - s->pad_y, end_y = min_of(y + s->in_rows * s->step_y, s->height);
    if (y < 0) y = 0;
    if (end_y < y) end_y = y;
    /* Rows of images at a time: all images where a unit has more than two. */
    int64_t n_parts = u.n_twos > 1 ? 1 : n_images, x_rows = u.n_twos > 1 ? n_images * s->height : end_y - y;
    int64_t grad_rows = u.n_twos > 1 ? n_images * s->out_height : u.n_rows;
    for (int64_t i = 0; i < n_parts; i++) {
        int64_t x_at = ((image + i) * s->height + y) * s->width;
        int64_t grad_at = ((image + i) * s->out_height + u.first_row) * s->out_width;
        add_range(&a, (int)(2 * i), x + x_at * s->x_pixel, x_rows * s->width, s->x_pixel, s->c);
        add_range(&a, (int)(2 * i + 1), grad + grad_at * s->grad_pixel, grad_rows * s->out_width, s->grad_pixel, s->o);
    }
    for (int i = 0; i < N_RANGES; i++)
        n_lines += a.range[i].n_pixels * a.range[i].n_lines;
    a.lines_a_call = n_lines / n_calls + 1;
    return a;
}

static void fetch_ahead(pairs_ahead *a)
{
    int64_t left = a->lines_a_call;
    for (; a->i_range < N_RANGES; a->i_range++) {
        pairs_range *r = &a->range[a->i_range];
        for (; r->n_pixels > 0; r->n_pixels--, r->from += r->pixel_bytes, r->line = 0)
            for (; r->line < r->n_lines; r->line++) {
                if (!left--) return;
                __builtin_prefetch(r->from + r->line * LINE);
            }
    }
}

/* --- products --- */

static int64_t count_calls(const pairs_state *s, int64_t n_out)
{
    return s->c / STK_PAIRS_CHUNK * s->kernel_h * s->kernel_w * ((n_out + STK_PAIRS_TILE - 1) / STK_PAIRS_TILE);
}

/* All sums of output channels [begin, end), which are whole tiles, over a unit's pixels. */
static void multiply_unit(const pairs_state *s, pairs_unit u, uint32_t *unit, int64_t begin, int64_t end, float *sums,
                          bool adds, pairs_ahead *ahead)
{
    const uint32_t *grads = grads_of(s, unit);
    stk_pairs_tile tile = {.x_image = s->in_rows * s->in_cols * STK_PAIRS_CHUNK,
                           .x_row = s->stride_y / s->step_y * s->in_cols * STK_PAIRS_CHUNK,
                           .x_col = s->stride_x / s->step_x * STK_PAIRS_CHUNK,
                           .n_images = u.n_twos,
                           .n_rows = u.n_rows,
                           .n_cols = s->out_width,
                           .sums_step = s->kernel_h * s->kernel_w * s->x_pixel,
                           .adds = adds};
    for (int64_t c = 0; c < s->c; c += STK_PAIRS_CHUNK)
        for (int64_t tap = 0; tap < s->kernel_h * s->kernel_w; tap++) {
            int64_t at = tap / s->kernel_w * s->in_cols + tap % s->kernel_w;
            tile.x = unit + c / STK_PAIRS_CHUNK * s->chunk_step + at * STK_PAIRS_CHUNK;
            for (int64_t o = begin; o < end; o += STK_PAIRS_TILE) {
                tile.grad = grads + o * s->tile_step;
                tile.sums = sums + o * tile.sums_step + tap * s->x_pixel + c;
                fetch_ahead(ahead);
                s->fns->multiply(&tile, stk_pairs_width(o, s->o));
            }
        }
}

/* --- threads share units --- */

/* A thread's block of scratch memory: its pairs, and its sums where they are not the result itself. */
static char *own_block(const pairs_state *s, const stk_kernel_args *args, int i_part)
{
    return (char *)args->scratch + s->part_bytes * (size_t)i_part;
}

static float *own_sums(const pairs_state *s, const stk_kernel_args *args, int i_part)
{
    return i_part ? (float *)(void *)(own_block(s, args, i_part) + s->unit_bytes) : args->out[0];
}

/* The sums over units [begin, end), with the pairs of one at a time. */
static void run_units(const pairs_state *s, const stk_kernel_args *args, int64_t begin, int64_t end, uint32_t *pairs,
                      float *sums)
{
    for (int64_t i = begin; i < end; i++) {
        pairs_unit u = find_unit(s, i);
        pairs_ahead ahead = {.i_range = N_RANGES};
        if (i + 1 < end) ahead = look_ahead(s, args, find_unit(s, i + 1), count_calls(s, s->o));
        join_unit(s, args, u, pairs, 0, 1);
        multiply_unit(s, u, pairs, 0, s->o, sums, i > begin, &ahead);
    }
}

static void run_share(const void *p, int i_part, int n_parts)
{
    const pairs_task *task = p;
    const pairs_state *s = task->s;
    float *sums = own_sums(s, task->args, i_part);
    uint32_t *pairs = (uint32_t *)(void *)own_block(s, task->args, i_part);
    int64_t begin, end;
    stk_cpu_share(s->n_units, 1, i_part, n_parts, &begin, &end);
    if (begin == end) memset(sums, 0, (size_t)(s->o * s->kernel_h * s->kernel_w * s->c) * sizeof(*sums));
    run_units(s, task->args, begin, end, pairs, sums);
}

static void add_share(const void *p, int i_part, int n_parts)
{
    const pairs_task *task = p;
    const pairs_state *s = task->s;
    float *to = task->args->out[0];
    int64_t begin, end;
    stk_cpu_share(s->o * s->kernel_h * s->kernel_w * s->c, 64, i_part, n_parts, &begin, &end);
    for (int part = 1; part < s->n_threads; part++) {
        const float *from = own_sums(s, task->args, part);
        for (int64_t i = begin; i < end; i++)
            to[i] += from[i];
    }
}

/* --- threads share channels --- */

static void run_channels(const void *p, int i_part, int n_parts)
{
    const pairs_task *task = p;
    pairs_state s = *task->s;
    stk_kernel_args args = *task->args;
    void *in[2] = {args.in[0], args.in[1]};
    int64_t begin, end;
    float *sums = args.out[0];
    args.in = in;
    if (s.c > s.o) {
        stk_cpu_share(s.c, STK_PAIRS_CHUNK, i_part, n_parts, &begin, &end);
        s.c = end - begin;
        in[0] = (uint16_t *)in[0] + begin;
        sums += begin;
    } else {
        stk_cpu_share(s.o, STK_PAIRS_TILE, i_part, n_parts, &begin, &end);
        s.o = end - begin;
        in[1] = (uint16_t *)in[1] + begin;
        sums += begin * s.kernel_h * s.kernel_w * s.x_pixel;
    }
    uint32_t *pairs = (uint32_t *)(void *)own_block(&s, &args, i_part);
    if (begin < end) run_units(&s, &args, 0, s.n_units, pairs, sums);
}

/* --- threads share pairs --- */

static uint32_t *shared_unit(const pairs_task *task, int64_t i)
{
    return (uint32_t *)((char *)task->args->scratch + task->s->unit_bytes * (size_t)i);
}

static void join_share(const void *p, int i_part, int n_parts)
{
    const pairs_task *task = p;
    for (int64_t i = 0; i < task->n_units; i++)
        join_unit(task->s, task->args, find_unit(task->s, task->first_unit + i), shared_unit(task, i), i_part, n_parts);
}

static void multiply_share(const void *p, int i_part, int n_parts)
{
    const pairs_task *task = p;
    int64_t begin, end;
    stk_cpu_share(task->s->o, STK_PAIRS_TILE, i_part, n_parts, &begin, &end);
    const pairs_state *s = task->s;
    for (int64_t i = 0; i < task->n_units; i++) {
        int64_t next = task->first_unit + task->n_units + i;
        pairs_ahead ahead = {.i_range = N_RANGES};
        /* Each thread fetches a part of the calls' worth; who joins which rows does not matter in the last cache. */
        if (next < s->n_units) ahead = look_ahead(s, task->args, find_unit(s, next), count_calls(s, s->o));
        multiply_unit(s, find_unit(s, task->first_unit + i), shared_unit(task, i), begin, end, task->args->out[0],
                      task->first_unit + i > 0, &ahead);
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const pairs_state *s = p;
    pairs_task task = {.s = s, .args = args};
    if (s->way == SHARE_CHANNELS) {
        stk_cpu_parallel(s->n_threads, run_channels, &task);
        return STK_OK;
    }
    if (s->way == SHARE_UNITS) {
        stk_cpu_parallel(s->n_threads, run_share, &task);
        if (s->n_threads > 1) stk_cpu_parallel(s->n_threads, add_share, &task);
        return STK_OK;
    }
    for (; task.first_unit < s->n_units; task.first_unit += s->units_at_once) {
        task.n_units = min_of(s->units_at_once, s->n_units - task.first_unit);
        stk_cpu_parallel(s->n_threads, join_share, &task);
        stk_cpu_parallel(s->n_threads, multiply_share, &task);
    }
    return STK_OK;
}

/* --- making --- */

static bool is_covered(const stk_conv_shape *s)
{
    const stk_window *w = &s->window;
    return s->pass == STK_CONV_GRAD_WEIGHT && s->x.rank == 4 && w->groups == 1 && w->dilation[0] == 1 &&
           w->dilation[1] == 1 && s->x.dim[0] > 1 && s->x.dim[3] % STK_PAIRS_CHUNK == 0 && s->y.dim[3] % 4 == 0;
}

static void set_units(pairs_state *s)
{
    bool is_point = s->kernel_h == 1 && s->kernel_w == 1 && !s->pad_y && !s->pad_x;
    int64_t pixels = s->out_height * s->out_width;
    s->step_y = is_point ? s->stride_y : 1;
    s->step_x = is_point ? s->stride_x : 1;
    s->n_twos = (s->n_images + 1) / 2;
    s->twos = min_of(s->n_twos, pixels < UNIT_PIXELS ? UNIT_PIXELS / pixels : 1);
    int64_t most_rows = s->out_width < UNIT_PIXELS ? UNIT_PIXELS / s->out_width : 1;
    s->n_blocks_y = pixels < UNIT_PIXELS ? 1 : (s->out_height + most_rows - 1) / most_rows;
    s->rows = (s->out_height + s->n_blocks_y - 1) / s->n_blocks_y;
    s->n_blocks_y = (s->out_height + s->rows - 1) / s->rows;
    s->n_units = (s->n_twos + s->twos - 1) / s->twos * s->n_blocks_y;
    s->in_rows = (s->rows - 1) * (s->stride_y / s->step_y) + s->kernel_h;
    s->in_cols = (s->out_width - 1) * (s->stride_x / s->step_x) + s->kernel_w;
    s->chunk_step = s->twos * s->in_rows * s->in_cols * STK_PAIRS_CHUNK;
    s->tile_step = s->twos * s->rows * s->out_width;
}

static size_t bytes_of_unit(const pairs_state *s, int64_t c, int64_t o)
{
    return stk_round_up((size_t)(c / STK_PAIRS_CHUNK * s->chunk_step + o * s->tile_step) * sizeof(uint32_t), 64);
}

/* The most that stk_cpu_share gives a thread. */
static int64_t most_of_share(int64_t n, int64_t grain, int n_parts)
{
    int64_t n_grains = (n + grain - 1) / grain;
    return min_of(n, (n_grains + n_parts - 1) / n_parts * grain);
}

static size_t set_scratch(pairs_state *s)
{
    size_t n = (size_t)s->n_threads;
    size_t sums = stk_round_up((size_t)(s->o * s->kernel_h * s->kernel_w * s->c) * sizeof(float), 64);
    s->unit_bytes = bytes_of_unit(s, s->c, s->o);
    if (n == 1) return s->unit_bytes;
    if (sums <= OWN_SUMS || (n - 1) * sums <= ALL_SUMS) {
        s->part_bytes = (size_t)stk_cpu_apart((int64_t)(s->unit_bytes + sums));
        return n * s->part_bytes;
    }
    if (n <= FEW_THREADS) {
        s->way = SHARE_CHANNELS;
        s->unit_bytes = s->c > s->o ? bytes_of_unit(s, most_of_share(s->c, STK_PAIRS_CHUNK, s->n_threads), s->o)
                                    : bytes_of_unit(s, s->c, most_of_share(s->o, STK_PAIRS_TILE, s->n_threads));
        s->part_bytes = (size_t)stk_cpu_apart((int64_t)s->unit_bytes);
        return n * s->part_bytes;
    }
    s->way = SHARE_PAIRS;
    int64_t most = SHARED_PAIRS / (int64_t)s->unit_bytes;
    s->units_at_once = most < 1 ? 1 : min_of(most, s->n_units);
    return s->unit_bytes * (size_t)s->units_at_once;
}

bool stk_conv_pairs_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape shape = stk_conv_shape_of(call);
    return call->in[0].dtype == STK_BF16 && stk_isa_has_bf16(device->isa) && stk_pairs_of_build() && is_covered(&shape);
}

stk_status stk_conv_pairs_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_conv_shape whole = stk_conv_shape_of(call), *shape = &whole;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(pairs_state), run, out));
    const stk_window *w = &shape->window;
    pairs_state *s = out->state;
    *s = (pairs_state){.fns = stk_pairs_of_build(), .n_threads = device->base.n_threads};
    s->n_images = shape->x.dim[0], s->height = shape->x.dim[1], s->width = shape->x.dim[2], s->c = shape->x.dim[3];
    s->out_height = shape->y.dim[1], s->out_width = shape->y.dim[2], s->o = shape->y.dim[3];
    s->x_pixel = s->c, s->grad_pixel = s->o;
    s->kernel_h = shape->weight.dim[1], s->kernel_w = shape->weight.dim[2];
    s->stride_y = w->stride[0], s->stride_x = w->stride[1], s->pad_y = w->pad_low[0], s->pad_x = w->pad_low[1];
    set_units(s);
    out->scratch_bytes = set_scratch(s);
    return STK_OK;
}

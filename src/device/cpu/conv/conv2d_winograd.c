/* See conv2d_winograd.h. Threads share the tiles: forward and for data, a block of tiles goes all the way in one
 * thread's memory. For weights all threads make a block's V and D together and then share the positions, so that
 * there is one set of sums, however many threads there are. But where the sums are few, each thread has its own, for
 * tiles of its own: then V and D stay in the cache of the core that made them.
 */
#include "device/cpu/conv/conv2d_winograd.h"

#include <string.h>

#include "base/align.h"
#include "device/cpu/conv/conv2d_shape.h"

const float stk_winograd_zeros[STK_WINOGRAD_MOST_CHANNELS];

typedef struct winograd_state {
    stk_winograd plan;
    const stk_winograd_fns *fns;
    int n_threads;
    int64_t shared_floats, block_floats;
    int n_sums; /* of the gradient of weights: 1, or each part's */
    bool has_bias;
} winograd_state;

static const char *const impls[STK_N_ISAS] = {"own winograd baseline", "own winograd avx2", "own winograd avx512"};
static const char *const impls_of_4[STK_N_ISAS] = {"own winograd 4x4 baseline", "own winograd 4x4 avx2",
                                                   "own winograd 4x4 avx512"};

/* --- forward and gradient of data --- */

static void pack_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const winograd_state *s = task->state;
    s->fns->pack_share(&s->plan, task->args->in[1], task->args->scratch, i_part, n_parts);
}

static void run_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const winograd_state *s = task->state;
    const stk_kernel_args *args = task->args;
    float *shared = args->scratch, *own = shared + s->shared_floats + s->block_floats * stk_cpu_worker();
    int64_t begin, end;
    stk_cpu_share(s->plan.n_tiles, s->plan.block, i_part, n_parts, &begin, &end);
    for (int64_t at = begin; at < end; at += s->plan.block)
        s->fns->run_block(&s->plan, args->in[0], shared, s->has_bias ? args->in[2] : NULL, args->out[0], at,
                          end - at < s->plan.block ? end : at + s->plan.block, own);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const winograd_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->n_threads, pack_share, &task);
    stk_cpu_parallel((int)((s->plan.n_tiles + s->plan.block - 1) / s->plan.block), run_share, &task);
    return STK_OK;
}

/* --- gradient of weights --- */

typedef struct weight_task {
    const winograd_state *state;
    const stk_kernel_args *args;
    float *own;
    int64_t begin, end; /* tiles */
} weight_task;

/* From one part's sums, with its block behind them, to the next one's. */
static int64_t part_floats(const winograd_state *s)
{
    return stk_cpu_apart((s->shared_floats + s->block_floats) * (int64_t)sizeof(float)) / (int64_t)sizeof(float);
}

static void spread_share(const void *p, int i_part, int n_parts)
{
    const weight_task *t = p;
    t->state->fns->spread_share(&t->state->plan, t->args->in[0], t->args->in[1], t->begin, t->end, t->own, i_part,
                                n_parts);
}

static void multiply_share(const void *p, int i_part, int n_parts)
{
    const weight_task *t = p;
    t->state->fns->multiply_share(&t->state->plan, t->end - t->begin, t->own, t->args->scratch, t->begin > 0, i_part,
                                  n_parts);
}

static void finish_share(const void *p, int i_part, int n_parts)
{
    const weight_task *t = p;
    t->state->fns->finish_share(&t->state->plan, t->args->scratch, t->state->n_sums, part_floats(t->state),
                                t->args->out[0], i_part, n_parts);
}

/* One part's tiles, with sums of its own. */
static void own_share(const void *p, int i_part, int n_parts)
{
    const weight_task *t = p;
    const winograd_state *s = t->state;
    int n_positions = (int)stk_winograd_positions(&s->plan);
    float *sums = (float *)t->args->scratch + part_floats(s) * i_part, *own = sums + s->shared_floats;
    int64_t first, last, end;
    stk_cpu_share(s->plan.n_tiles, 1, i_part, n_parts, &first, &last);
    for (int64_t begin = first; begin < last; begin = end) {
        end = last - begin < s->plan.block ? last : begin + s->plan.block;
        s->fns->spread_share(&s->plan, t->args->in[0], t->args->in[1], begin, end, own, 0, 1);
        for (int i = 0; i < n_positions; i++)
            s->fns->multiply_share(&s->plan, end - begin, own, sums, begin > first, i, n_positions);
    }
}

static stk_status run_weight(const void *p, const stk_kernel_args *args)
{
    enum { PARTS_A_THREAD = 4 };
    const winograd_state *s = p;
    int n_parts = s->n_threads == 1 ? 1 : s->n_threads * PARTS_A_THREAD;
    int n_positions = (int)stk_winograd_positions(&s->plan), twice = 2 * s->n_threads;
    int n_products = twice <= n_positions ? n_positions : n_positions * (twice / n_positions);
    weight_task task = {s, args, (float *)args->scratch + s->shared_floats, 0, 0};
    if (s->n_sums > 1) {
        stk_cpu_parallel(s->n_sums, own_share, &task);
        stk_cpu_parallel(s->n_threads, finish_share, &task);
        return STK_OK;
    }
    for (; task.begin < s->plan.n_tiles; task.begin = task.end) {
        int64_t left = s->plan.n_tiles - task.begin;
        task.end = task.begin + (left < s->plan.block ? left : s->plan.block);
        stk_cpu_parallel(n_parts, spread_share, &task);
        stk_cpu_parallel(n_products, multiply_share, &task);
    }
    stk_cpu_parallel(s->n_threads, finish_share, &task);
    return STK_OK;
}

/* --- all --- */

/* Multiplications of the direct way over those of this one, where both skip padding as they do. */
static double gain(const stk_conv_shape *s, int64_t side)
{
    const stk_window *w = &s->window;
    double direct = 1, tiles = (double)((side + 2) * (side + 2));
    for (int i = 0; i < 2; i++) {
        stk_shape out = s->pass == STK_CONV_GRAD_DATA ? s->x : s->y;
        direct *= (double)(3 * s->y.dim[1 + i] - w->pad_low[i] - w->pad_high[i]);
        tiles *= (double)((out.dim[1 + i] + side - 1) / side);
    }
    return direct / tiles;
}

static bool pays(const stk_conv_shape *s, int64_t side)
{
    enum { GRAIN = 16, LEAST_CHANNELS = 32, LEAST_PIXELS = 256 };
    const stk_window *w = &s->window;
    if (s->x.rank != 4 || w->groups != 1) return false;
    for (int i = 0; i < 2; i++)
        if (s->weight.dim[1 + i] != 3 || w->stride[i] != 1 || w->dilation[i] != 1 || w->pad_low[i] > 1 ||
            w->pad_high[i] > 1)
            return false;
    int64_t c = s->x.dim[3], o = s->y.dim[3];
    if (c % GRAIN || o % GRAIN || c < LEAST_CHANNELS || o < LEAST_CHANNELS) return false;
    if (c > STK_WINOGRAD_MOST_CHANNELS || o > STK_WINOGRAD_MOST_CHANNELS) return false;
    return stk_shape_product(s->y, 0, 3) >= LEAST_PIXELS && gain(s, side) >= 1.3;
}

bool stk_conv_is_winograd(const stk_conv_shape *s)
{
    return pays(s, 2);
}

static stk_winograd make_plan(const stk_conv_shape *s, int64_t side)
{
    bool is_data = s->pass == STK_CONV_GRAD_DATA;
    stk_shape in = is_data ? s->y : s->x, out = is_data ? s->x : s->y;
    stk_winograd w = {
        .pass = s->pass,
        .n_images = in.dim[0],
        .in_h = in.dim[1],
        .in_w = in.dim[2],
        .c_in = in.dim[3],
        .out_h = out.dim[1],
        .out_w = out.dim[2],
        .c_out = out.dim[3],
        .pad_y = is_data ? 2 - s->window.pad_low[0] : s->window.pad_low[0],
        .pad_x = is_data ? 2 - s->window.pad_low[1] : s->window.pad_low[1],
        .side = side,
        .tiles_y = (out.dim[1] + side - 1) / side,
        .tiles_x = (out.dim[2] + side - 1) / side,
        .has_relu = s->has_relu,
    };
    w.n_tiles = w.n_images * w.tiles_y * w.tiles_x;
    return w;
}

/* Tiles at a time at most. U of many channels comes from the L3 cache for each block, which takes longer than the
 * arithmetic where a block is small; of few channels, V and M should stay in L2 themselves. With the most channels,
 * V and M of large blocks are as much memory as U, and would decide the peak of a whole network. */
static int64_t most_tiles(const stk_winograd *w)
{
    int64_t n = w->c_in * w->c_out;
    /* V and M of a tile of 4 x 4 outputs have twice the memory of one of 2 x 2. */
    if (w->side == 4 && w->pass != STK_CONV_GRAD_WEIGHT) return n >= 128 * 128 ? 48 : 36;
    if (w->side == 4) return n >= 512 * 512 ? 96 : 192;
    if (n >= 512 * 512) return w->pass == STK_CONV_GRAD_WEIGHT ? 96 : 144;
    return w->pass == STK_CONV_GRAD_WEIGHT || n >= 256 * 256 ? 288 : n >= 128 * 128 ? 144 : 72;
}

/* As many blocks for each thread as for any other. */
static int64_t choose_block(const stk_winograd *w, int64_t n_threads, int rows)
{
    int64_t most = most_tiles(w) * n_threads, n_blocks = (w->n_tiles + most - 1) / most * n_threads;
    int64_t block = (w->n_tiles + n_blocks - 1) / n_blocks;
    return stk_round_up_i64(block, rows);
}

/* V and D next to a thread's own sums. */
static int64_t own_block(const stk_winograd *w)
{
    return w->side == 4 && w->c_in * w->c_out <= 64 * 64 ? 48 : 96;
}

/* How many sums a gradient of weights has: each thread its own, where a second-level cache holds them and tiles are
 * enough to be worth adding them up. */
static int choose_sums(const stk_winograd *w, int n_threads)
{
    enum { MOST = 128 * 128, TILES = 96 };
    if (w->pass != STK_CONV_GRAD_WEIGHT || w->c_in * w->c_out > MOST) return 1;
    return w->n_tiles < (int64_t)TILES * n_threads ? 1 : n_threads;
}

bool stk_conv_winograd_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape shape = stk_conv_shape_of(call);
    return (call->in[0].dtype == STK_F32 || stk_cpu_has_half(device, call)) && stk_conv_is_winograd(&shape);
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, int64_t side, stk_kernel *out)
{
    const stk_conv_shape whole = stk_conv_shape_of(call), *shape = &whole;
    bool is_weight = shape->pass == STK_CONV_GRAD_WEIGHT;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(winograd_state), is_weight ? run_weight : run, out));
    winograd_state *s = out->state;
    const stk_winograd_table *table = stk_winograd_of(device->isa);
    out->impl = side == 4 ? impls_of_4[device->isa] : impls[device->isa];
    s->fns = side == 4 ? &table->of_4 : &table->fns[call->in[0].dtype];
    s->n_threads = device->base.n_threads;
    s->plan = make_plan(shape, side);
    s->has_bias = shape->has_bias;
    stk_winograd *w = &s->plan;
    out->flops = 2.0 * (double)stk_winograd_positions(w) * (double)w->n_tiles * (double)w->c_in * (double)w->c_out;
    w->block = choose_block(w, is_weight ? 1 : s->n_threads, s->fns->rows);
    s->n_sums = choose_sums(w, s->n_threads);
    if (s->n_sums > 1) w->block = own_block(w);
    s->shared_floats = s->fns->shared_floats(w);
    s->block_floats = s->fns->block_floats(w);
    int64_t floats = s->shared_floats + s->block_floats * (is_weight ? 1 : s->n_threads);
    if (s->n_sums > 1) floats = part_floats(s) * s->n_sums;
    out->scratch_bytes = (size_t)floats * sizeof(float);
    return STK_OK;
}

stk_status stk_conv_winograd_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call, 2, out);
}

bool stk_conv_winograd_4_can(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    stk_conv_shape shape = stk_conv_shape_of(call);
    return call->in[0].dtype == STK_F32 && pays(&shape, 4);
}

stk_status stk_conv_winograd_4_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call, 4, out);
}

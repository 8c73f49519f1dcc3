/* Our own loops, in f32 and f64: one product, or a batch of them. Threads share the batch where it is long enough, else
 * each product.
 */
#include <string.h>

#include "device/cpu/matmul/matmul_impls.h"

#define SMALL 6e7 /* FLOP of a product whose operands stay in the cores' caches from step to step */

enum { APART = 32 << 10 };

/* How threads share the work. */
typedef enum matmul_sharing {
    SHARE_BATCH,   /* whole products */
    SHARE_ROWS,    /* rows of each, after packing b together */
    SHARE_COLUMNS, /* columns of each */
    SHARE_PANELS,  /* columns of each, where a is small */
    SHARE_HEIGHT   /* rows of each, where a is small; each part packs all of b, panel by panel */
} matmul_sharing;

/* Else they pack one b together. */
static bool packs_alone(matmul_sharing sharing)
{
    return sharing == SHARE_BATCH || sharing == SHARE_PANELS || sharing == SHARE_HEIGHT;
}

typedef struct matmul_state {
    stk_gemm_fns fns;
    stk_gemm gemm; /* strides and sizes; pointers are set by a run */
    matmul_sharing sharing;
    int n_threads, n_parts;
    bool has_small_a;
    int64_t step; /* columns at once */
    bool has_bias;
    int64_t n_batch, a_step, b_step, c_step; /* bytes from one matrix to the next */
    size_t packed_b_bytes, c_bytes;
    size_t thread_bytes; /* from a thread's scratch to the next */
} matmul_state;

/* One column block of one product, or of a range of products. */
typedef struct block_task {
    const matmul_state *s;
    const stk_kernel_args *args;
    int64_t i_batch, col, n;
    bool *has_a; /* of each worker */
} block_task;

/* The scratch memory: each worker's packed a, and its part of b; or b of all, behind them. */
static stk_gemm find_gemm(const block_task *task, int64_t i_batch)
{
    const matmul_state *s = task->s;
    char *scratch = task->args->scratch, *own = scratch + s->thread_bytes * (size_t)stk_cpu_worker();
    bool own_b = packs_alone(s->sharing);
    stk_gemm g = s->gemm;
    g.a = (const char *)task->args->in[0] + i_batch * s->a_step;
    g.b = (const char *)task->args->in[1] + i_batch * s->b_step;
    g.bias = s->has_bias ? task->args->in[2] : NULL;
    g.c = (char *)task->args->out[0] + i_batch * s->c_step;
    g.packed_a = own;
    g.packed_b = own_b ? own + s->fns.packed_a_bytes : scratch + s->thread_bytes * (size_t)s->n_threads;
    return g;
}

static void pack_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    stk_gemm g = find_gemm(task, task->i_batch);
    task->s->fns.pack_share(&g, task->col, task->n, i_part, n_parts);
}

static void rows_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    stk_gemm g = find_gemm(task, task->i_batch);
    task->s->fns.multiply_rows(&g, task->col, task->n, i_part, n_parts);
}

static void columns_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    stk_gemm g = find_gemm(task, task->i_batch);
    task->s->fns.multiply_columns(&g, task->col, task->n, i_part, n_parts);
}

static void panels_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    stk_gemm g = find_gemm(task, task->i_batch);
    task->s->fns.multiply_panels(&g, task->col, task->n, i_part, n_parts, &task->has_a[stk_cpu_worker()]);
}

static void height_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    stk_gemm g = find_gemm(task, task->i_batch);
    int64_t begin, end, size = task->s->c_step / (g.m * g.n);
    bool has_a = false;
    stk_cpu_share(g.m, task->s->fns.low_rows, i_part, n_parts, &begin, &end);
    g.m = end - begin;
    g.downwards = i_part < n_parts / 2;
    g.a = (const char *)g.a + begin * g.a_row * size;
    g.c = (char *)g.c + begin * g.n * size;
    if (g.m > 0) task->s->fns.multiply_panels(&g, task->col, task->n, 0, 1, &has_a);
}

static void batch_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    const matmul_state *s = task->s;
    int64_t begin, end;
    stk_cpu_share(s->n_batch, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        stk_gemm g = find_gemm(task, i);
        bool has_a = false;
        for (int64_t col = 0; col < g.n; col += s->step) {
            int64_t n = g.n - col < s->step ? g.n - col : s->step;
            if (s->has_small_a)
                s->fns.multiply_panels(&g, col, n, 0, 1, &has_a);
            else
                s->fns.multiply_columns(&g, col, n, 0, 1);
        }
    }
}

static void run_block(const block_task *task)
{
    const matmul_state *s = task->s;
    if (s->sharing == SHARE_ROWS) stk_cpu_parallel(s->n_threads, pack_share, task);
    stk_cpu_parallel(s->n_parts,
                     s->sharing == SHARE_ROWS     ? rows_share
                     : s->sharing == SHARE_PANELS ? panels_share
                     : s->sharing == SHARE_HEIGHT ? height_share
                                                  : columns_share,
                     task);
}

/* Where there is nothing to sum up. */
static void write_empty_sums(const matmul_state *s, const stk_kernel_args *args)
{
    size_t row = (size_t)(s->gemm.m ? s->c_step / s->gemm.m : 0);
    if (!s->c_bytes) return;
    memset(args->out[0], 0, s->c_bytes);
    for (size_t at = 0; s->has_bias && at < s->c_bytes; at += row)
        memcpy((char *)args->out[0] + at, args->in[2], row);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const matmul_state *s = p;
    bool has_a[STK_CPU_MOST_THREADS];
    block_task task = {.s = s, .args = args, .has_a = has_a};
    if (s->gemm.k == 0) {
        write_empty_sums(s, args);
        return STK_OK;
    }
    if (!s->c_bytes) return STK_OK;
    if (s->sharing == SHARE_BATCH) {
        stk_cpu_parallel(s->n_parts, batch_share, &task);
        return STK_OK;
    }
    for (task.i_batch = 0; task.i_batch < s->n_batch; task.i_batch++) {
        memset(has_a, 0, (size_t)s->n_threads * sizeof(*has_a));
        for (task.col = 0; task.col < s->gemm.n; task.col += s->step) {
            task.n = s->gemm.n - task.col < s->step ? s->gemm.n - task.col : s->step;
            run_block(&task);
        }
    }
    return STK_OK;
}

/* More parts than threads, where each is long enough: a core that is slow for a while then gets fewer of them. A small
 * product has one part a thread, the same in every step: its weights stay in that core's cache, and so does a weight's
 * gradient (the product with a transposed a), of which the optimiser's threads take the same rows. */
static void choose_sharing(matmul_state *s, double flops)
{
    enum { PARTS_A_THREAD = 12, LEAST_ROWS = 16 };
    int64_t n_panels = (s->gemm.n + s->fns.tile_cols - 1) / s->fns.tile_cols, most = (int64_t)(flops * 1e-6);
    s->has_small_a = s->fns.has_small_a(&s->gemm);
    s->n_parts = s->n_threads;
    bool is_small = flops < SMALL, is_high = s->gemm.m >= LEAST_ROWS * s->n_threads;
    if (s->n_batch >= 4 * s->n_threads) {
        s->sharing = SHARE_BATCH;
    } else if (is_small && s->n_threads > 1 && s->gemm.a_col != 1 && s->has_small_a && is_high) {
        s->sharing = SHARE_HEIGHT;
    } else if (s->n_threads > 1 && s->fns.shares_rows(&s->gemm, s->n_threads)) {
        s->sharing = SHARE_ROWS;
    } else if (s->has_small_a) {
        s->sharing = SHARE_PANELS;
        most = most < n_panels ? most : n_panels;
        most = most < PARTS_A_THREAD * s->n_threads ? most : PARTS_A_THREAD * s->n_threads;
        if (s->n_threads > 1 && most > s->n_threads && !is_small) s->n_parts = (int)most;
    } else {
        s->sharing = SHARE_COLUMNS;
    }
}

bool stk_matmul_own_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    return stk_cpu_reads_wide(device, call);
}

stk_status stk_matmul_own_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_matmul_sizes sizes = stk_matmul_sizes_of(call);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(matmul_state), run, out));
    matmul_state *s = out->state;
    *s = (matmul_state){.gemm = sizes.gemm, .has_bias = sizes.has_bias, .n_batch = sizes.n_batch};
    s->a_step = sizes.a_step, s->b_step = sizes.b_step, s->c_step = sizes.c_step;
    s->fns = call->in[0].dtype == STK_F64 ? stk_gemm_of(device->isa)->f64 : stk_gemm_of(device->isa)->f32;
    s->c_bytes = stk_desc_bytes(call->out[0]);
    double flops = stk_matmul_flops(&sizes);
    s->n_threads = stk_matmul_threads(device, &sizes);
    s->step = s->fns.columns_at_once(s->gemm.n, s->gemm.k);
    choose_sharing(s, flops);
    if (s->sharing == SHARE_PANELS || s->sharing == SHARE_HEIGHT || (s->sharing == SHARE_BATCH && s->has_small_a))
        s->packed_b_bytes = s->fns.panel_bytes;
    else
        s->packed_b_bytes = s->fns.packed_b_bytes(s->gemm.n, s->gemm.k, s->sharing == SHARE_BATCH ? 1 : s->n_threads);
    s->packed_b_bytes = (s->packed_b_bytes + 63) / 64 * 64;
    bool own_b = packs_alone(s->sharing);
    s->thread_bytes = s->fns.packed_a_bytes + (own_b ? s->packed_b_bytes : 0);
    /* A core fetches ahead: what another one works on is not to be there. */
    if (s->n_threads > 1 && flops < SMALL) s->thread_bytes += APART;
    out->scratch_bytes = s->thread_bytes * (size_t)s->n_threads + (own_b ? 0 : s->packed_b_bytes);
    return STK_OK;
}

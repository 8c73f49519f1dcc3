/* matmul: one product, or a batch of them. Threads share the batch where it is long enough, else each product. */
#include "device/cpu/matmul.h"

#include <string.h>

#include "device/cpu/cpu.h"

typedef struct matmul_state {
    stk_gemm_fns fns;
    stk_gemm gemm; /* strides and sizes; pointers are set by a run */
    int n_threads;
    bool shares_batch, shares_rows;
    int64_t step;                            /* columns at once */
    int64_t n_batch, a_step, b_step, c_step; /* bytes from one matrix to the next */
    size_t packed_b_bytes, c_bytes;
} matmul_state;

/* One column block of one product, or of a range of products. */
typedef struct block_task {
    const matmul_state *s;
    const stk_kernel_args *args;
    int64_t i_batch, col, n;
} block_task;

static stk_gemm find_gemm(const block_task *task, int64_t i_batch, int i_part)
{
    const matmul_state *s = task->s;
    char *scratch = task->args->scratch;
    stk_gemm g = s->gemm;
    g.a = (const char *)task->args->in[0] + i_batch * s->a_step;
    g.b = (const char *)task->args->in[1] + i_batch * s->b_step;
    g.c = (char *)task->args->out[0] + i_batch * s->c_step;
    g.packed_a = scratch + s->fns.packed_a_bytes * (size_t)i_part;
    g.packed_b = scratch + s->fns.packed_a_bytes * (size_t)s->n_threads +
                 (s->shares_batch ? s->packed_b_bytes * (size_t)i_part : 0);
    return g;
}

static void pack_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    stk_gemm g = find_gemm(task, task->i_batch, i_part);
    task->s->fns.pack_share(&g, task->col, task->n, i_part, n_parts);
}

static void rows_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    stk_gemm g = find_gemm(task, task->i_batch, i_part);
    task->s->fns.multiply_rows(&g, task->col, task->n, i_part, n_parts);
}

static void columns_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    stk_gemm g = find_gemm(task, task->i_batch, i_part);
    task->s->fns.multiply_columns(&g, task->col, task->n, i_part, n_parts);
}

static void batch_share(const void *p, int i_part, int n_parts)
{
    const block_task *task = p;
    const matmul_state *s = task->s;
    int64_t begin, end;
    stk_cpu_share(s->n_batch, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        stk_gemm g = find_gemm(task, i, i_part);
        for (int64_t col = 0; col < g.n; col += s->step)
            s->fns.multiply_columns(&g, col, g.n - col < s->step ? g.n - col : s->step, 0, 1);
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const matmul_state *s = p;
    block_task task = {.s = s, .args = args};
    if (s->gemm.k == 0) {
        if (s->c_bytes) memset(args->out[0], 0, s->c_bytes);
        return STK_OK;
    }
    if (!s->c_bytes) return STK_OK;
    if (s->shares_batch) {
        stk_cpu_parallel(s->n_threads, batch_share, &task);
        return STK_OK;
    }
    for (task.i_batch = 0; task.i_batch < s->n_batch; task.i_batch++)
        for (task.col = 0; task.col < s->gemm.n; task.col += s->step) {
            task.n = s->gemm.n - task.col < s->step ? s->gemm.n - task.col : s->step;
            if (s->shares_rows) stk_cpu_parallel(s->n_threads, pack_share, &task);
            stk_cpu_parallel(s->n_threads, s->shares_rows ? rows_share : columns_share, &task);
        }
    return STK_OK;
}

static void set_sizes(matmul_state *s, const stk_op_call *call)
{
    stk_shape a = call->in[0].shape, b = call->in[1].shape, c = call->out[0].shape;
    bool ta = call->attrs->matmul.transpose_a, tb = call->attrs->matmul.transpose_b;
    stk_gemm *g = &s->gemm;
    g->m = c.dim[c.rank - 2];
    g->n = c.dim[c.rank - 1];
    g->k = a.dim[a.rank - (ta ? 2 : 1)];
    g->a_row = ta ? 1 : g->k;
    g->a_col = ta ? g->m : 1;
    g->b_row = tb ? 1 : g->n;
    g->b_col = tb ? g->k : 1;
    s->n_batch = stk_shape_product(c, 0, c.rank - 2);
    bool shared = b.rank == 2;
    if (shared && !ta) {
        /* All rows of all matrices below each other. */
        g->m *= s->n_batch;
        s->n_batch = 1;
    }
    int64_t bytes = (int64_t)stk_dtype_bytes(call->out[0].dtype);
    s->a_step = g->m * g->k * bytes;
    s->b_step = shared ? 0 : g->k * g->n * bytes;
    s->c_step = g->m * g->n * bytes;
}

stk_status stk_cpu_matmul_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_dtype dtype = call->out[0].dtype;
    if (dtype != STK_F32 && dtype != STK_F64) return stk_cpu_widen_kernel(device, call, stk_cpu_matmul_kernel, out);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(matmul_state), run, out));
    matmul_state *s = out->state;
    s->fns = dtype == STK_F64 ? stk_gemm_of(device->isa)->f64 : stk_gemm_of(device->isa)->f32;
    s->c_bytes = stk_desc_bytes(call->out[0]);
    set_sizes(s, call);
    double flops = 2.0 * (double)s->n_batch * (double)s->gemm.m * (double)s->gemm.n * (double)s->gemm.k;
    s->n_threads = flops < 2.5e5 ? 1 : device->base.n_threads;
    s->shares_batch = s->n_batch >= 4 * s->n_threads;
    int n_sharing = s->shares_batch ? 1 : s->n_threads;
    s->step = s->fns.columns_at_once(s->gemm.n, s->gemm.k);
    s->shares_rows = n_sharing > 1 && s->fns.shares_rows(&s->gemm, n_sharing);
    s->packed_b_bytes = (s->fns.packed_b_bytes(s->gemm.n, s->gemm.k, n_sharing) + 63) / 64 * 64;
    out->scratch_bytes =
        s->fns.packed_a_bytes * (size_t)s->n_threads + s->packed_b_bytes * (size_t)(s->shares_batch ? s->n_threads : 1);
    return STK_OK;
}

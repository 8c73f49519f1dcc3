/* Caches of keys and values: rows written into them, in place where the plan lets it, and attention to them, a head of
 * a query at a time. */
#include "device/cpu/attention/cached_attention.h"

#include <string.h>

#include "device/cpu/impl.h"

static stk_status check_position(int64_t position, int64_t n_rows, int64_t n_all)
{
    if (position >= 0 && position <= n_all - n_rows) return STK_OK;
    return stk_fail(STK_INVALID, "position %lld: %lld rows from there on do not lie within the cache's %lld",
                    (long long)position, (long long)n_rows, (long long)n_all);
}

/* --- write_at --- */

typedef struct write_state {
    int64_t n, n_all, n_rows; /* samples; rows of each of x, and of what is written */
    size_t row_bytes;
} write_state;

static stk_status run_write(const void *p, const stk_kernel_args *args)
{
    const write_state *s = p;
    int64_t position = *(const int64_t *)args->in[2];
    size_t bytes = (size_t)s->n_rows * s->row_bytes, step = (size_t)s->n_all * s->row_bytes;
    STK_RETURN_IF_ERROR(check_position(position, s->n_rows, s->n_all));
    if (args->out[0] != args->in[0] && step) memcpy(args->out[0], args->in[0], (size_t)s->n * step);
    for (int64_t n = 0; n < s->n && bytes; n++)
        memcpy((char *)args->out[0] + (size_t)n * step + (size_t)position * s->row_bytes,
               (const char *)args->in[1] + (size_t)n * bytes, bytes);
    return STK_OK;
}

stk_status stk_cpu_write_at_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_shape x = call->in[0].shape;
    (void)device;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(write_state), run_write, out));
    *(write_state *)out->state =
        (write_state){x.dim[0], x.dim[1], call->in[1].shape.dim[1],
                      (size_t)stk_shape_product(x, 2, x.rank) * stk_dtype_bytes(call->in[0].dtype)};
    out->in_place[0] = 1;
    return STK_OK;
}

/* --- cached_attention --- */

typedef struct attend_state {
    stk_attend_row_fn attend;
    stk_shape q;
    int64_t n_all;
    double scale;
    size_t element_bytes, worker_bytes;
    int n_threads;
} attend_state;

typedef struct attend_task {
    const attend_state *s;
    const stk_kernel_args *args;
    int64_t position;
} attend_task;

static void attend_share(const void *p, int i_part, int n_parts)
{
    const attend_task *task = p;
    const attend_state *s = task->s;
    int64_t n_queries = s->q.dim[1], n_heads = s->q.dim[2], d = s->q.dim[3], begin, end;
    char *score = (char *)task->args->scratch + s->worker_bytes * (size_t)stk_cpu_worker();
    stk_cpu_share(s->q.dim[0] * n_queries * n_heads, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i / (n_queries * n_heads), t = i / n_heads % n_queries, h = i % n_heads;
        size_t row = (size_t)(i * d) * s->element_bytes;
        size_t first = (size_t)((n * s->n_all * n_heads + h) * d) * s->element_bytes;
        s->attend(d, task->position + t + 1, n_heads * d, s->scale, (const char *)task->args->in[0] + row,
                  (const char *)task->args->in[1] + first, (const char *)task->args->in[2] + first, score,
                  (char *)task->args->out[0] + row);
    }
}

/* How many keys there are is known here only, and with it whether threads are worth waking. */
static stk_status run_attend(const void *p, const stk_kernel_args *args)
{
    enum { PARTS_A_THREAD = 3, MOST = 4096 };
    const attend_state *s = p;
    attend_task task = {s, args, *(const int64_t *)args->in[3]};
    STK_RETURN_IF_ERROR(check_position(task.position, s->q.dim[1], s->n_all));
    int64_t n_rows = s->q.dim[0] * s->q.dim[1] * s->q.dim[2];
    double work = 2.0 * (double)n_rows * (double)s->q.dim[3] * (double)(task.position + s->q.dim[1]);
    int64_t n_threads = stk_cpu_threads_for(work, s->n_threads), n_parts = n_threads * PARTS_A_THREAD;
    if (n_threads == 1) n_parts = 1;
    n_parts = n_parts < n_rows ? n_parts : n_rows;
    if (n_rows) stk_cpu_parallel((int)(n_parts < MOST ? n_parts : MOST), attend_share, &task);
    return STK_OK;
}

static stk_status make_attend(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_dtype dtype = call->in[0].dtype;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(attend_state), run_attend, out));
    attend_state *s = out->state;
    const stk_attend_row_table *table = stk_attend_row_of(device->isa);
    s->attend = dtype == STK_F64 ? table->f64 : table->f32;
    s->q = call->in[0].shape;
    s->n_all = call->in[1].shape.dim[1];
    s->scale = call->attrs->attention.scale;
    s->element_bytes = stk_dtype_bytes(dtype);
    s->n_threads = device->base.n_threads;
    s->worker_bytes = ((size_t)s->n_all * s->element_bytes + 63) / 64 * 64;
    out->scratch_bytes = s->worker_bytes * (size_t)s->n_threads;
    return STK_OK;
}

static const stk_cpu_impl impls[] = {
    {NULL, stk_cpu_reads_wide, make_attend},
    STK_CPU_IMPL_WIDENED,
    {0},
};

stk_status stk_cpu_cached_attention_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

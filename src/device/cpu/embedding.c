/* Rows of a weight by number, of any dtype, and the gradient: rows added up by number. There the parts share the
 * columns, so that the same row may come up in all of them and sums have the order of the ids, whatever the threads.
 */
#include "device/cpu/embedding.h"

#include <string.h>

#include "device/cpu/cpu.h"

enum { COLUMNS = 16 }; /* a part's at least: a cache line */

typedef struct embedding_state {
    stk_add_rows_fn add;
    int64_t n_ids, n_rows, width; /* of the weight: n_rows x width */
    size_t row_bytes;
    bool has_base;
    int n_threads, n_parts;
} embedding_state;

static stk_status check_ids(const embedding_state *s, const int32_t *ids)
{
    for (int64_t i = 0; i < s->n_ids; i++)
        if (ids[i] < 0 || ids[i] >= s->n_rows)
            return stk_fail(STK_CORRUPT, "id %d at position %lld is not one of the %lld rows", (int)ids[i],
                            (long long)i, (long long)s->n_rows);
    return STK_OK;
}

static void copy_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const embedding_state *s = task->state;
    const int32_t *ids = task->args->in[1];
    int64_t begin, end;
    stk_cpu_share(s->n_ids, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end && s->row_bytes; i++)
        memcpy((char *)task->args->out[0] + (size_t)i * s->row_bytes,
               (const char *)task->args->in[0] + (size_t)ids[i] * s->row_bytes, s->row_bytes);
}

static stk_status run_forward(const void *p, const stk_kernel_args *args)
{
    const embedding_state *s = p;
    STK_RETURN_IF_ERROR(check_ids(s, args->in[1]));
    stk_cpu_parallel(s->n_threads, copy_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

/* The base, or zeros, where it is not in place. */
static void start_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const embedding_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_rows, 1, i_part, n_parts, &begin, &end);
    size_t at = (size_t)begin * s->row_bytes, bytes = (size_t)(end - begin) * s->row_bytes;
    if (!bytes) return;
    if (s->has_base)
        memcpy((char *)task->args->out[0] + at, (const char *)task->args->in[2] + at, bytes);
    else
        memset((char *)task->args->out[0] + at, 0, bytes);
}

static void add_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const embedding_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->width, COLUMNS, i_part, n_parts, &begin, &end);
    s->add(s->n_ids, task->args->in[1], s->width, begin, end, task->args->in[0], task->args->out[0]);
}

static stk_status run_grad(const void *p, const stk_kernel_args *args)
{
    const embedding_state *s = p;
    stk_cpu_task task = {p, args};
    STK_RETURN_IF_ERROR(check_ids(s, args->in[1]));
    if (!s->has_base || args->out[0] != args->in[2]) stk_cpu_parallel(s->n_threads, start_share, &task);
    stk_cpu_parallel(s->n_parts, add_share, &task);
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, stk_tensor_desc weight, stk_shape ids,
                       stk_status (*run)(const void *, const stk_kernel_args *), stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(embedding_state), run, out));
    embedding_state *s = out->state;
    s->n_ids = stk_shape_count(ids);
    s->n_rows = weight.shape.dim[0];
    s->width = weight.shape.dim[1];
    s->row_bytes = (size_t)s->width * stk_dtype_bytes(weight.dtype);
    s->n_threads = s->n_parts = stk_cpu_threads_for((double)s->n_ids * (double)s->width * 2, device->base.n_threads);
    return STK_OK;
}

stk_status stk_cpu_embedding_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call->in[0], call->in[1].shape, run_forward, out);
}

stk_status stk_cpu_embedding_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_tensor_desc weight = call->out[0];
    const stk_embedding_table *table = stk_embedding_of(device->isa);
    if (weight.dtype != STK_F32 && weight.dtype != STK_F64)
        return stk_cpu_widen_kernel(device, call, stk_cpu_embedding_grad_kernel, out);
    STK_RETURN_IF_ERROR(make(device, weight, call->in[1].shape, run_grad, out));
    embedding_state *s = out->state;
    s->add = weight.dtype == STK_F64 ? table->add_f64 : table->add_f32;
    s->has_base = call->n_in == 3;
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(weight.shape), device->base.n_threads);
    int64_t most = (s->width + COLUMNS - 1) / COLUMNS;
    if (s->n_parts > most) s->n_parts = most > 1 ? (int)most : 1;
    if (s->has_base) out->in_place[0] = 1u << 2;
    return STK_OK;
}

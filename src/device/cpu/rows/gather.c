/* Rows along an axis by number, of any dtype, and the gradient: rows added up by number. There the parts share the
 * columns, so that the same row may come up in all of them and sums have the order of the ids, whatever the threads.
 */
#include "device/cpu/rows/gather.h"

#include <string.h>

#include "device/cpu/impl.h"

enum { COLUMNS = 16 }; /* a part's at least: a cache line */

/* x, or base, as [n_outer, n_axis, width] around the axis. */
typedef struct gather_state {
    stk_add_rows_fn add;
    int64_t n_ids, n_outer, n_axis, width;
    size_t row_bytes; /* of width elements */
    bool has_base;
    int n_threads, n_parts;
} gather_state;

static stk_status check_ids(const gather_state *s, const int32_t *ids)
{
    for (int64_t i = 0; i < s->n_ids; i++)
        if (ids[i] < 0 || ids[i] >= s->n_axis)
            return stk_fail(STK_NO_ROW, "id %d at position %lld is not one of the %lld rows", (int)ids[i], (long long)i,
                            (long long)s->n_axis);
    return STK_OK;
}

static void copy_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const gather_state *s = task->state;
    const int32_t *ids = task->args->in[1];
    int64_t begin, end;
    stk_cpu_share(s->n_outer * s->n_ids, 1, i_part, n_parts, &begin, &end);
    if (begin == end || !s->row_bytes) return;
    int64_t outer = begin / s->n_ids, k = begin % s->n_ids;
    char *dst = (char *)task->args->out[0] + (size_t)begin * s->row_bytes;
    for (int64_t i = begin; i < end; i++, dst += s->row_bytes) {
        const char *src = (const char *)task->args->in[0] + (size_t)(outer * s->n_axis + ids[k]) * s->row_bytes;
        /* Single numbers are common, and not worth a call. */
        if (s->row_bytes == 4)
            memcpy(dst, src, 4);
        else
            memcpy(dst, src, s->row_bytes);
        if (++k == s->n_ids) {
            k = 0;
            outer++;
        }
    }
}

static stk_status run_gather(const void *p, const stk_kernel_args *args)
{
    const gather_state *s = p;
    STK_RETURN_IF_ERROR(check_ids(s, args->in[1]));
    stk_cpu_parallel(s->n_threads, copy_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

/* The base, or zeros, where it is not in place. */
static void start_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const gather_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_outer * s->n_axis, 1, i_part, n_parts, &begin, &end);
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
    const gather_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->width, COLUMNS, i_part, n_parts, &begin, &end);
    for (int64_t outer = 0; outer < s->n_outer; outer++)
        s->add(s->n_ids, task->args->in[1], s->width, begin, end,
               (const char *)task->args->in[0] + (size_t)(outer * s->n_ids) * s->row_bytes,
               (char *)task->args->out[0] + (size_t)(outer * s->n_axis) * s->row_bytes);
}

static stk_status run_scatter_add(const void *p, const stk_kernel_args *args)
{
    const gather_state *s = p;
    stk_cpu_task task = {p, args};
    STK_RETURN_IF_ERROR(check_ids(s, args->in[1]));
    if (!s->has_base || args->out[0] != args->in[2]) stk_cpu_parallel(s->n_threads, start_share, &task);
    stk_cpu_parallel(s->n_parts, add_share, &task);
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, stk_tensor_desc x, stk_shape ids, int axis,
                       stk_status (*run)(const void *, const stk_kernel_args *), stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(gather_state), run, out));
    gather_state *s = out->state;
    s->n_ids = stk_shape_count(ids);
    s->n_outer = stk_shape_product(x.shape, 0, axis);
    s->n_axis = x.shape.dim[axis];
    s->width = stk_shape_product(x.shape, axis + 1, x.shape.rank);
    s->row_bytes = (size_t)s->width * stk_dtype_bytes(x.dtype);
    double work = (double)s->n_outer * (double)s->n_ids * (double)s->width * 2;
    s->n_threads = s->n_parts = stk_cpu_threads_for(work, device->base.n_threads);
    return STK_OK;
}

stk_status stk_cpu_gather_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call->in[0], call->in[1].shape, call->attrs->axis, run_gather, out);
}

static stk_status make_scatter_add(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_tensor_desc base = call->out[0];
    const stk_gather_table *table = stk_gather_of(device->isa);
    STK_RETURN_IF_ERROR(make(device, base, call->in[1].shape, call->attrs->axis, run_scatter_add, out));
    gather_state *s = out->state;
    s->add = base.dtype == STK_F64 ? table->add_f64 : table->add_f32;
    s->has_base = call->n_in == 3;
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(base.shape), device->base.n_threads);
    int64_t most = (s->width + COLUMNS - 1) / COLUMNS;
    if (s->n_parts > most) s->n_parts = most > 1 ? (int)most : 1;
    if (s->has_base) out->in_place[0] = 1u << 2;
    return STK_OK;
}

static const stk_cpu_impl scatter_add_impls[] = {
    {NULL, stk_cpu_writes_wide, make_scatter_add},
    STK_CPU_IMPL_WIDENED,
    {0},
};

stk_status stk_cpu_scatter_add_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, scatter_add_impls, out);
}

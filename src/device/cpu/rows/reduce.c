/* Sum, mean, maximum, minimum and product over any axes.
 *
 * Axes are collapsed, so that kept and reduced ones alternate. An output is a `group`: a vector along the last axis
 * where that is kept (columns), else one number (runs). What is reduced is cut into units: some rows, or a run, along
 * the innermost reduced axis. Threads share the groups, or, where there are few of them, the units: then each has its
 * own accumulators, which are merged in the order of the threads.
 */
#include "device/cpu/rows/reduce.h"

#include <string.h>

#include "device/cpu/element/element.h"
#include "device/cpu/impl.h"

typedef struct axis_list {
    int n;
    int64_t dim[STK_MAX_RANK], stride[STK_MAX_RANK];
} axis_list;

typedef struct reduce_state {
    stk_reduce_fns fns;
    int log2_bytes, out_log2_bytes, n_threads;
    bool by_columns, splits_units;
    double divisor;
    axis_list kept, reduced; /* kept: without the vector axis */
    int64_t n_groups, width, n_units;
    int64_t unit_size; /* along the innermost reduced axis */
} reduce_state;

static int64_t offset_of(const axis_list *axes, int n, int64_t index)
{
    int64_t offset = 0;
    for (int i = n - 1; i >= 0; i--) {
        offset += index % axes->dim[i] * axes->stride[i];
        index /= axes->dim[i];
    }
    return offset;
}

/* acc[width] of one group takes in units begin .. end-1. */
static void reduce_units(const reduce_state *s, const char *src, int64_t begin, int64_t end, stk_wide *acc)
{
    int last = s->reduced.n - 1;
    int64_t dim = s->reduced.dim[last], stride = s->reduced.stride[last];
    int64_t n_splits = (dim + s->unit_size - 1) / s->unit_size;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t from = unit % n_splits * s->unit_size;
        int64_t n = dim - from < s->unit_size ? dim - from : s->unit_size;
        int64_t offset = from * stride + offset_of(&s->reduced, last, unit / n_splits);
        const char *at = src + ((size_t)offset << s->log2_bytes);
        if (s->by_columns)
            s->fns.columns(n, s->width, at, stride, acc);
        else
            s->fns.run(n, at, acc);
    }
}

static void start(const reduce_state *s, int64_t n, stk_wide *acc)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] = s->fns.first;
}

static void reduce_groups(const reduce_state *s, const stk_kernel_args *args, stk_wide *acc, int64_t begin, int64_t end)
{
    for (int64_t group = begin; group < end; group++) {
        const char *src = (const char *)args->in[0] + ((size_t)offset_of(&s->kept, s->kept.n, group) << s->log2_bytes);
        start(s, s->width, acc);
        reduce_units(s, src, 0, s->n_units, acc);
        s->fns.finish(s->width, acc, s->divisor,
                      (char *)args->out[0] + ((size_t)(group * s->width) << s->out_log2_bytes));
    }
}

/* Every part takes its units of every group; merge_share follows. */
static void split_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const reduce_state *s = task->state;
    const stk_kernel_args *args = task->args;
    int64_t n = s->n_groups * s->width, begin, end;
    stk_wide *own = (stk_wide *)args->scratch + n * i_part;
    stk_cpu_share(s->n_units, 1, i_part, n_parts, &begin, &end);
    start(s, n, own);
    for (int64_t group = 0; group < s->n_groups; group++) {
        const char *src = (const char *)args->in[0] + ((size_t)offset_of(&s->kept, s->kept.n, group) << s->log2_bytes);
        reduce_units(s, src, begin, end, own + group * s->width);
    }
}

static void merge_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const reduce_state *s = task->state;
    const stk_kernel_args *args = task->args;
    int64_t n = s->n_groups * s->width, begin, end;
    stk_wide *all = args->scratch;
    stk_cpu_share(n, 8, i_part, n_parts, &begin, &end);
    for (int i = 1; i < n_parts; i++)
        s->fns.merge(end - begin, all + n * i + begin, all + begin);
    s->fns.finish(end - begin, all + begin, s->divisor, (char *)args->out[0] + ((size_t)begin << s->out_log2_bytes));
}

static void groups_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const reduce_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_groups, 1, i_part, n_parts, &begin, &end);
    reduce_groups(s, task->args, (stk_wide *)task->args->scratch + s->width * i_part, begin, end);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const reduce_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->n_threads, s->splits_units ? split_share : groups_share, &task);
    if (s->splits_units) stk_cpu_parallel(s->n_threads, merge_share, &task);
    return STK_OK;
}

/* --- preparing --- */

static void list_axes(reduce_state *s, stk_shape x, uint32_t axes)
{
    int64_t dim[STK_MAX_RANK], stride[STK_MAX_RANK], step = 1;
    bool reduced[STK_MAX_RANK];
    int n = 0;
    /* From the last axis to the first; neighbours of one kind become one axis. */
    for (int i = x.rank - 1; i >= 0; i--) {
        bool is_reduced = axes >> i & 1;
        if (n && reduced[n - 1] == is_reduced) {
            dim[n - 1] *= x.dim[i];
        } else if (x.dim[i] != 1) {
            dim[n] = x.dim[i];
            stride[n] = step;
            reduced[n++] = is_reduced;
        }
        step *= x.dim[i];
    }
    s->width = 1;
    s->by_columns = n && !reduced[0];
    if (s->by_columns) s->width = dim[0];
    for (int i = n - 1; i >= (s->by_columns ? 1 : 0); i--) {
        axis_list *list = reduced[i] ? &s->reduced : &s->kept;
        list->dim[list->n] = dim[i];
        list->stride[list->n++] = stride[i];
    }
    /* Over axes of length 1: a copy. */
    if (!s->reduced.n) s->reduced = (axis_list){1, {1}, {1}};
}

static void cut(reduce_state *s, int n_threads)
{
    int last = s->reduced.n - 1;
    s->unit_size = s->by_columns ? STK_REDUCE_ROWS : STK_REDUCE_RUN;
    s->n_groups = s->n_units = 1;
    for (int i = 0; i < s->kept.n; i++)
        s->n_groups *= s->kept.dim[i];
    for (int i = 0; i < last; i++)
        s->n_units *= s->reduced.dim[i];
    s->n_units *= (s->reduced.dim[last] + s->unit_size - 1) / s->unit_size;
    s->splits_units = n_threads > 1 && s->n_groups < 4 * n_threads && s->n_units >= 2 * n_threads;
}

/* Empty where the dtype has none. */
static const stk_reduce_fns *find_fns(const stk_cpu_device *device, const stk_op_call *call)
{
    const stk_reduce_table *table = stk_reduce_of(device->isa);
    stk_dtype dtype = call->in[0].dtype;
    switch (call->attrs->reduce.kind) {
    case STK_REDUCE_MAX: return &table->max[dtype];
    case STK_REDUCE_MIN: return &table->min[dtype];
    case STK_REDUCE_PROD: return &table->prod[dtype];
    default: return &table->sum[dtype];
    }
}

static bool has_loops(const stk_cpu_device *device, const stk_op_call *call)
{
    return find_fns(device, call)->run != NULL;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(reduce_state), run, out));
    reduce_state *s = out->state;
    s->fns = *find_fns(device, call);
    /* Sums of 16-bit floats may come out in f32. */
    s->fns.finish = stk_reduce_of(device->isa)->sum[call->out[0].dtype].finish;
    s->log2_bytes = stk_dtype_log2(call->in[0].dtype);
    s->out_log2_bytes = stk_dtype_log2(call->out[0].dtype);
    s->divisor = 1;
    list_axes(s, call->in[0].shape, call->attrs->reduce.axes);
    if (call->attrs->reduce.kind == STK_REDUCE_MEAN)
        for (int i = 0; i < s->reduced.n; i++)
            s->divisor *= (double)s->reduced.dim[i];
    s->n_threads = stk_cpu_threads_for((double)stk_shape_count(call->in[0].shape), device->base.n_threads);
    cut(s, s->n_threads);
    int64_t n_acc = s->splits_units ? s->n_groups * s->width : s->width;
    out->scratch_bytes = (size_t)(n_acc * s->n_threads + 8) * sizeof(stk_wide);
    return STK_OK;
}

static const stk_cpu_impl impls[] = {
    {NULL, has_loops, make},
    STK_CPU_IMPL_WIDENED,
    {0},
};

stk_status stk_cpu_reduce_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

/* Group normalisation and its gradient. Parts share the samples; the gradients of scale and bias are sums over all
 * parts, added up in their order by a second call.
 */
#include "device/cpu/norm/group_norm.h"

#include "device/cpu/impl.h"

enum { SLOTS = 8 }; /* a part's doubles for each channel: 2 sums, 6 for the loops */

typedef struct group_state {
    stk_group_norm_fns fns;
    stk_group_norm_sizes sizes;
    int64_t n_samples;
    size_t bytes; /* of an element */
    int n_parts;
} group_state;

static void *sample_of(void *p, const group_state *s, int64_t i)
{
    return (char *)p + (size_t)(i * s->sizes.n_rows * s->sizes.n_channels) * s->bytes;
}

static void *stats_of(void *p, const group_state *s, int64_t i)
{
    return (char *)p + (size_t)(i * s->sizes.n_groups) * s->bytes;
}

static double *part_scratch(const group_state *s, const stk_kernel_args *args, int i_part)
{
    return (double *)args->scratch + i_part * SLOTS * s->sizes.n_channels;
}

static void forward_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const group_state *s = task->state;
    void *const *in = task->args->in, *const *out = task->args->out;
    int64_t begin, end;
    stk_cpu_share(s->n_samples, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        s->fns.forward(&s->sizes, sample_of(in[0], s, i), in[1], in[2], sample_of(out[0], s, i), stats_of(out[1], s, i),
                       stats_of(out[2], s, i), part_scratch(s, task->args, i_part));
}

static void grad_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const group_state *s = task->state;
    void *const *in = task->args->in;
    double *sums = part_scratch(s, task->args, i_part);
    int64_t begin, end;
    for (int64_t c = 0; c < 2 * s->sizes.n_channels; c++)
        sums[c] = 0;
    stk_cpu_share(s->n_samples, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        s->fns.grad(&s->sizes, sample_of(in[0], s, i), sample_of(in[1], s, i), in[2], stats_of(in[3], s, i),
                    stats_of(in[4], s, i), sample_of(task->args->out[0], s, i), sums, sums + 2 * s->sizes.n_channels);
}

static void merge(const group_state *s, const stk_kernel_args *args)
{
    int64_t n = s->sizes.n_channels;
    for (int64_t i = 0; i < 2 * n; i++) {
        double sum = 0;
        for (int k = 0; k < s->n_parts; k++)
            sum += part_scratch(s, args, k)[i];
        void *out = args->out[i < n ? 1 : 2];
        if (s->bytes == 8)
            ((double *)out)[i % n] = sum;
        else
            ((float *)out)[i % n] = (float)sum;
    }
}

static stk_status run_forward(const void *p, const stk_kernel_args *args)
{
    const group_state *s = p;
    stk_cpu_parallel(s->n_parts, forward_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

static stk_status run_grad(const void *p, const stk_kernel_args *args)
{
    const group_state *s = p;
    stk_cpu_parallel(s->n_parts, grad_share, &(stk_cpu_task){p, args});
    merge(s, args);
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_tensor_desc x,
                       stk_status (*run)(const void *, const stk_kernel_args *), stk_kernel *out)
{
    const stk_group_norm_table *table = stk_group_norm_of(device->isa);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(group_state), run, out));
    group_state *s = out->state;
    s->fns = x.dtype == STK_F64 ? table->f64 : table->f32;
    s->bytes = stk_dtype_bytes(x.dtype);
    s->n_samples = x.shape.dim[0];
    s->sizes = (stk_group_norm_sizes){.n_rows = stk_shape_product(x.shape, 1, x.shape.rank - 1),
                                      .n_channels = x.shape.dim[x.shape.rank - 1],
                                      .n_groups = call->attrs->group_norm.groups,
                                      .eps = call->attrs->group_norm.eps};
    s->n_parts = stk_cpu_threads_for((double)stk_shape_count(x.shape) * 4, device->base.n_threads);
    out->scratch_bytes = (size_t)s->n_parts * SLOTS * (size_t)s->sizes.n_channels * sizeof(double);
    return STK_OK;
}

static stk_status make_forward(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], run_forward, out));
    /* x's first row is the shift of the sums, which are done when y is written. */
    out->in_place[0] = 1;
    return STK_OK;
}

static stk_status make_grad(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, call->in[1], run_grad, out));
    out->in_place[0] = 3;
    return STK_OK;
}

static const stk_cpu_impl forward_impls[] = {
    {NULL, stk_cpu_reads_wide, make_forward},
    STK_CPU_IMPL_WIDENED,
    {0},
};

static const stk_cpu_impl grad_impls[] = {
    {NULL, stk_cpu_reads_wide, make_grad},
    STK_CPU_IMPL_WIDENED,
    {0},
};

stk_status stk_cpu_group_norm_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, forward_impls, out);
}

stk_status stk_cpu_group_norm_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, grad_impls, out);
}

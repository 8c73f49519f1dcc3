/* Layer normalisation and its gradient. Parts share the rows; the gradients of scale and bias are sums over all parts,
 * added up in their order by a second call.
 */
#include "device/cpu/norm/layer_norm.h"

#include "device/cpu/cpu.h"

typedef struct norm_state {
    stk_layer_norm_fns fns;
    int64_t n_rows, n, padded; /* padded: elements between the arrays of a part's scratch */
    size_t bytes, stat_bytes;  /* of an element; of a statistic or parameter */
    double eps;
    int n_parts;
} norm_state;

static void *row_of(void *p, const norm_state *s, int64_t row)
{
    return (char *)p + (size_t)(row * s->n) * s->bytes;
}

static void *stat_of(void *p, const norm_state *s, int64_t row)
{
    return (char *)p + (size_t)row * s->stat_bytes;
}

static void forward_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const norm_state *s = task->state;
    void *const *in = task->args->in, *const *out = task->args->out;
    int64_t begin, end;
    stk_cpu_share(s->n_rows, 1, i_part, n_parts, &begin, &end);
    s->fns.forward(end - begin, s->n, row_of(in[0], s, begin), in[1], in[2], s->eps, row_of(out[0], s, begin),
                   stat_of(out[1], s, begin), stat_of(out[2], s, begin));
}

static stk_status run_forward(const void *p, const stk_kernel_args *args)
{
    const norm_state *s = p;
    stk_cpu_parallel(s->n_parts, forward_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

/* A part's scratch: double sums[2][n], then the loops' own [2][n]. */
static double *part_sums(const norm_state *s, const stk_kernel_args *args, int i_part)
{
    return (double *)args->scratch + i_part * 2 * s->padded;
}

static void grad_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const norm_state *s = task->state;
    void *const *in = task->args->in;
    double *sums = part_sums(s, task->args, i_part);
    int64_t begin, end;
    for (int64_t i = 0; i < 2 * s->n; i++)
        sums[i] = 0;
    stk_cpu_share(s->n_rows, 1, i_part, n_parts, &begin, &end);
    s->fns.grad(end - begin, s->n, row_of(in[0], s, begin), row_of(in[1], s, begin), in[2], stat_of(in[3], s, begin),
                stat_of(in[4], s, begin), row_of(task->args->out[0], s, begin), sums + s->padded, sums);
}

static void merge_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const norm_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(2 * s->n, 16, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int k = 0; k < s->n_parts; k++)
            sum += part_sums(s, task->args, k)[i];
        void *out = task->args->out[i < s->n ? 1 : 2];
        int64_t at = i < s->n ? i : i - s->n;
        if (s->stat_bytes == 8)
            ((double *)out)[at] = sum;
        else
            ((float *)out)[at] = (float)sum;
    }
}

static stk_status run_grad(const void *p, const stk_kernel_args *args)
{
    const norm_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->n_parts, grad_share, &task);
    stk_cpu_parallel(stk_cpu_threads_for((double)s->n * s->n_parts, s->n_parts), merge_share, &task);
    return STK_OK;
}

static const stk_layer_norm_fns *find_fns(const stk_cpu_device *device, stk_dtype dtype)
{
#ifdef STK_ISA_X86
    if (dtype == STK_BF16 && stk_isa_has_bf16(device->isa)) return &stk_layer_norm_avx512bf16;
#endif
    return &stk_layer_norm_of(device->isa)->fns[dtype];
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_tensor_desc x,
                       stk_status (*run)(const void *, const stk_kernel_args *), stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(norm_state), run, out));
    norm_state *s = out->state;
    s->fns = *find_fns(device, x.dtype);
    s->bytes = stk_dtype_bytes(x.dtype);
    s->stat_bytes = x.dtype == STK_F64 ? 8 : 4;
    s->n = x.shape.dim[x.shape.rank - 1];
    s->n_rows = stk_shape_product(x.shape, 0, x.shape.rank - 1);
    s->padded = (2 * s->n + 7) / 8 * 8;
    s->eps = call->attrs->layer_norm.eps;
    s->n_parts = stk_cpu_threads_for((double)s->n_rows * (double)s->n * 4, device->base.n_threads);
    return STK_OK;
}

stk_status stk_cpu_layer_norm_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], run_forward, out));
    out->in_place[0] = 1;
    return STK_OK;
}

stk_status stk_cpu_layer_norm_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, call->in[1], run_grad, out));
    const norm_state *s = out->state;
    out->scratch_bytes = (size_t)s->n_parts * 2 * (size_t)s->padded * sizeof(double);
    /* dx over dy or x. */
    out->in_place[0] = 3;
    return STK_OK;
}

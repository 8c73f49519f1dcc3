/* softmax and cross_entropy with their gradients, and in_top_k: row by row. */
#include "device/cpu/loss/softmax.h"

#include "device/cpu/impl.h"

typedef struct row_state {
    stk_softmax_fns fns;
    stk_op op;
    int n_threads, k;
    bool has_numbers; /* labels are class numbers */
    bool is_few;      /* of few classes */
    int64_t n_rows, n;
    size_t element_bytes;
    double smoothing;
} row_state;

static void run_row(const row_state *s, const stk_kernel_args *args, int64_t row, int64_t label)
{
    size_t at = (size_t)row * (size_t)s->n * s->element_bytes, scalar_at = (size_t)row * s->element_bytes;
    const char *x = (const char *)args->in[0] + at;
    char *y = (char *)args->out[0] + at;
    if (s->op == STK_OP_softmax) {
        s->fns.softmax(s->n, x, y);
        return;
    }
    /* Shares of classes, or the gradient; softmax has no second input. */
    const char *shares = s->has_numbers ? NULL : (const char *)args->in[1] + at;
    switch (s->op) {
    case STK_OP_softmax_grad: s->fns.softmax_grad(s->n, x, shares, y); break;
    case STK_OP_cross_entropy:
        s->fns.loss(s->n, x, label, shares, s->smoothing, (char *)args->out[0] + scalar_at);
        break;
    case STK_OP_cross_entropy_grad:
        s->fns.loss_grad(s->n, x, label, shares, s->smoothing, (const char *)args->in[2] + scalar_at, y);
        break;
    default: s->fns.in_top_k(s->n, x, label, s->k, (float *)args->out[0] + row); break;
    }
}

static void run_few(const row_state *s, const stk_kernel_args *args, int64_t begin, int64_t end)
{
    size_t scalar_at = (size_t)begin * s->element_bytes, at = scalar_at * (size_t)s->n;
    const char *x = (const char *)args->in[0] + at;
    const int32_t *labels = (const int32_t *)args->in[1] + begin;
    if (s->op == STK_OP_cross_entropy)
        s->fns.few_loss(end - begin, s->n, x, labels, s->smoothing, (char *)args->out[0] + scalar_at);
    else if (s->op == STK_OP_in_top_k)
        s->fns.few_in_top_k(end - begin, s->n, x, labels, s->k, (float *)args->out[0] + begin);
    else
        s->fns.few_loss_grad(end - begin, s->n, x, labels, s->smoothing, (const char *)args->in[2] + scalar_at,
                             (char *)args->out[0] + at);
}

static void run_share(const void *p, int i_thread, int n_threads)
{
    const stk_cpu_task *task = p;
    const row_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_rows, 1, i_thread, n_threads, &begin, &end);
    if (s->is_few) {
        run_few(s, task->args, begin, end);
        return;
    }
    for (int64_t row = begin; row < end; row++)
        run_row(s, task->args, row, s->has_numbers ? ((const int32_t *)task->args->in[1])[row] : -1);
}

static stk_status check_labels(const row_state *s, const int32_t *labels)
{
    for (int64_t row = 0; row < s->n_rows; row++)
        if (labels[row] < 0 || labels[row] >= s->n)
            return stk_fail(STK_CORRUPT, "label %d of row %lld is not one of the %lld classes", (int)labels[row],
                            (long long)row, (long long)s->n);
    return STK_OK;
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const row_state *s = p;
    if (s->has_numbers) STK_RETURN_IF_ERROR(check_labels(s, args->in[1]));
    if (s->n) stk_cpu_parallel(s->n_threads, run_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_tensor_desc x = call->in[0];
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(row_state), run, out));
    row_state *s = out->state;
    const stk_softmax_table *table = stk_softmax_of(device->isa);
    s->fns = x.dtype == STK_F64 ? table->f64 : table->f32;
    s->op = call->op;
    s->element_bytes = stk_dtype_bytes(x.dtype);
    s->n = x.shape.dim[x.shape.rank - 1];
    s->n_rows = stk_shape_product(x.shape, 0, x.shape.rank - 1);
    bool is_softmax = call->op == STK_OP_softmax || call->op == STK_OP_softmax_grad;
    s->has_numbers = !is_softmax && call->in[1].dtype == STK_I32;
    s->is_few = s->has_numbers && s->n <= STK_FEW_CLASSES;
    if (call->op == STK_OP_in_top_k) s->k = call->attrs->in_top_k.k;
    if (call->op == STK_OP_cross_entropy || call->op == STK_OP_cross_entropy_grad)
        s->smoothing = call->attrs->cross_entropy.smoothing;
    s->n_threads = stk_cpu_threads_for((double)s->n_rows * (double)s->n * 8, device->base.n_threads);
    if (call->op == STK_OP_softmax || call->op == STK_OP_cross_entropy_grad) out->in_place[0] = 1;
    if (call->op == STK_OP_softmax_grad) out->in_place[0] = 3;
    return STK_OK;
}

static const stk_cpu_impl impls[] = {
    {NULL, stk_cpu_reads_wide, make},
    STK_CPU_IMPL_WIDENED,
    {0},
};

stk_status stk_cpu_softmax_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

stk_status stk_cpu_softmax_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

stk_status stk_cpu_cross_entropy_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

stk_status stk_cpu_cross_entropy_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

stk_status stk_cpu_in_top_k_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

/* linear_cross_entropy and its gradient in f64, some rows of logits at a time: plain loops. Threads share the rows for
 * the logits, the loss and dx, then the classes for dweight.
 */
#include "device/cpu/loss/linear_cross_entropy.h"

#include <string.h>

#include "device/cpu/loss/softmax.h"

enum { MOST_ROWS = 64 };

typedef struct linear_state {
    stk_softmax_fns fns;
    int64_t m, v, d; /* rows, classes, features */
    int64_t ignored;
    double smoothing;
    bool is_grad, has_base;
    int n_threads;
} linear_state;

/* Rows [row, row + n); their logits are the scratch memory [n,v]. */
typedef struct linear_task {
    const linear_state *s;
    const stk_kernel_args *args;
    int64_t row, n;
} linear_task;

static double dot(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_scaled(int64_t n, double factor, const double *a, double *sum)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += factor * a[i];
}

/* The loss of a row; where gradients are wanted its logits become theirs. */
static void finish_row(const linear_task *task, int64_t row, double *logits)
{
    const linear_state *s = task->s;
    int64_t label = ((const int32_t *)task->args->in[2])[row];
    double *loss = (double *)task->args->out[s->is_grad ? 2 : 0] + row;
    if (label == s->ignored) {
        *loss = 0;
        if (s->is_grad) memset(logits, 0, (size_t)s->v * sizeof(*logits));
    } else if (s->is_grad) {
        const double *dloss = (const double *)task->args->in[3] + row;
        s->fns.loss_and_grad(s->v, logits, label, s->smoothing, dloss, loss, logits);
    } else {
        s->fns.loss(s->v, logits, label, NULL, s->smoothing, loss);
    }
}

static void row_share(const void *p, int i_part, int n_parts)
{
    const linear_task *task = p;
    const linear_state *s = task->s;
    const double *weight = task->args->in[1];
    int64_t begin, end;
    stk_cpu_share(task->n, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t row = task->row + i;
        const double *x = (const double *)task->args->in[0] + row * s->d;
        double *logits = (double *)task->args->scratch + i * s->v;
        for (int64_t k = 0; k < s->v; k++)
            logits[k] = dot(s->d, x, weight + k * s->d);
        finish_row(task, row, logits);
        if (!s->is_grad || s->d == 0) continue;
        double *dx = (double *)task->args->out[0] + row * s->d;
        memset(dx, 0, (size_t)s->d * sizeof(*dx));
        for (int64_t k = 0; k < s->v; k++)
            add_scaled(s->d, logits[k], weight + k * s->d, dx);
    }
}

static void class_share(const void *p, int i_part, int n_parts)
{
    const linear_task *task = p;
    const linear_state *s = task->s;
    const double *x = (const double *)task->args->in[0] + task->row * s->d;
    int64_t begin, end;
    stk_cpu_share(s->v, 1, i_part, n_parts, &begin, &end);
    for (int64_t k = begin; k < end; k++)
        for (int64_t i = 0; i < task->n; i++)
            add_scaled(s->d, ((const double *)task->args->scratch)[i * s->v + k], x + i * s->d,
                       (double *)task->args->out[1] + k * s->d);
}

static void start_weights(const linear_state *s, const stk_kernel_args *args)
{
    size_t bytes = (size_t)(s->v * s->d) * sizeof(double);
    if (bytes == 0) return;
    if (!s->has_base)
        memset(args->out[1], 0, bytes);
    else if (args->out[1] != args->in[4])
        memcpy(args->out[1], args->in[4], bytes);
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const linear_state *s = p;
    STK_RETURN_IF_ERROR(stk_linear_check_labels(args->in[2], s->m, s->v, s->ignored));
    if (s->is_grad) start_weights(s, args);
    linear_task task = {.s = s, .args = args};
    for (; task.row < s->m; task.row += MOST_ROWS) {
        task.n = s->m - task.row < MOST_ROWS ? s->m - task.row : MOST_ROWS;
        stk_cpu_parallel(s->n_threads, row_share, &task);
        if (s->is_grad) stk_cpu_parallel(s->n_threads, class_share, &task);
    }
    return STK_OK;
}

bool stk_linear_f64_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    return call->in[0].dtype == STK_F64;
}

stk_status stk_linear_f64_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(linear_state), run, out));
    linear_state *s = out->state;
    s->fns = stk_softmax_of(device->isa)->f64;
    s->m = call->in[0].shape.dim[0];
    s->d = call->in[0].shape.dim[1];
    s->v = call->in[1].shape.dim[0];
    s->ignored = call->attrs->linear_cross_entropy.ignore_index;
    s->smoothing = call->attrs->linear_cross_entropy.smoothing;
    s->is_grad = call->op == STK_OP_linear_cross_entropy_grad;
    s->has_base = call->n_in == 5;
    s->n_threads = stk_cpu_threads_for((double)s->m * (double)s->v * (double)(s->d + 8), device->base.n_threads);
    if (s->has_base) out->in_place[1] = 1u << 4;
    out->scratch_bytes = (size_t)((s->m < MOST_ROWS ? s->m : MOST_ROWS) * s->v) * sizeof(double);
    return STK_OK;
}

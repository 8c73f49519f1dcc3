/* sgd_update and adam_update. */
#include "device/cpu/update/optimizer.h"

#include <math.h>

#include "device/cpu/impl.h"

typedef struct update_state {
    stk_optimizer_fns fns;
    stk_op op;
    stk_attrs attrs;
    stk_dtype dtype;
    int n_parts, n_tensors; /* param and its state */
    int64_t n;
} update_state;

typedef struct update_task {
    const update_state *state;
    const stk_kernel_args *args;
    stk_sgd_numbers sgd;
    stk_adam_numbers adam;
} update_task;

static void run_share(const void *p, int i_part, int n_parts)
{
    const update_task *task = p;
    const update_state *s = task->state;
    const void *in[4] = {0};
    void *out[3] = {0};
    int64_t begin, end;
    stk_cpu_share(s->n, 64, i_part, n_parts, &begin, &end);
    size_t at = (size_t)begin * stk_dtype_bytes(s->dtype);
    for (int i = 0; i <= s->n_tensors; i++)
        in[i] = (const char *)task->args->in[i] + at;
    for (int i = 0; i < s->n_tensors; i++)
        out[i] = (char *)task->args->out[i] + at;
    if (s->op == STK_OP_adam_update)
        s->fns.adam(end - begin, &task->adam, in, out);
    else if (s->n_tensors == 2)
        s->fns.momentum(end - begin, &task->sgd, in[0], in[1], in[2], out[0], out[1]);
    else
        s->fns.sgd(end - begin, &task->sgd, in[0], in[1], out[0]);
}

static double read_lr(const update_state *s, const void *lr)
{
    return s->dtype == STK_F64 ? *(const double *)lr : (double)*(const float *)lr;
}

static stk_status run_sgd(const void *p, const stk_kernel_args *args)
{
    const update_state *s = p;
    const stk_attrs *a = &s->attrs;
    double lr = read_lr(s, args->in[s->n_tensors + 1]);
    update_task task = {.state = s, .args = args};
    task.sgd = (stk_sgd_numbers){.lr = lr,
                                 .momentum = a->sgd.momentum,
                                 .decay_param = a->sgd.like_keras ? lr * a->sgd.weight_decay : 0,
                                 .decay_grad = a->sgd.like_keras ? 0 : a->sgd.weight_decay,
                                 .nesterov = a->sgd.nesterov,
                                 .like_keras = a->sgd.like_keras};
    stk_cpu_parallel(s->n_parts, run_share, &task);
    return STK_OK;
}

static stk_status run_adam(const void *p, const stk_kernel_args *args)
{
    const update_state *s = p;
    const stk_attrs *a = &s->attrs;
    double lr = read_lr(s, args->in[4]), t = (double)*(const int64_t *)args->in[5] + 1, decay = a->adam.weight_decay;
    double correct_m = 1 - pow(a->adam.beta1, t), correct_v = 1 - pow(a->adam.beta2, t);
    update_task task = {.state = s, .args = args};
    task.adam = (stk_adam_numbers){.beta1 = a->adam.beta1,
                                   .beta2 = a->adam.beta2,
                                   .decay_param = a->adam.decoupled ? lr * decay : 0,
                                   .decay_grad = a->adam.decoupled ? 0 : decay,
                                   .step = lr / correct_m,
                                   .root_factor = 1 / sqrt(correct_v),
                                   .eps = a->adam.eps};
    if (a->adam.like_keras) {
        task.adam.step *= sqrt(correct_v);
        task.adam.root_factor = 1;
    }
    stk_cpu_parallel(s->n_parts, run_share, &task);
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_tensor_desc param = call->in[0];
    const stk_optimizer_table *table = stk_optimizer_of(device->isa);
    bool is_adam = call->op == STK_OP_adam_update;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(update_state), is_adam ? run_adam : run_sgd, out));
    update_state *s = out->state;
    s->fns = param.dtype == STK_F64 ? table->f64 : table->f32;
    s->op = call->op;
    s->attrs = *call->attrs;
    s->dtype = param.dtype;
    s->n_tensors = call->n_out;
    s->n = stk_shape_count(param.shape);
    /* More parts than threads: a core that is slow for a while gets fewer of them. A smaller parameter stays with its
     * core: matmul_own.c. */
    int n_threads = stk_cpu_threads_for((double)s->n * (is_adam ? 4 : 2), device->base.n_threads);
    s->n_parts = n_threads > 1 && s->n >= (1 << 20) ? 4 * n_threads : n_threads;
    for (int i = 0; i < s->n_tensors; i++)
        out->in_place[i] = 1u << i;
    return STK_OK;
}

static const stk_cpu_impl impls[] = {
    {NULL, stk_cpu_reads_wide, make},
    STK_CPU_IMPL_WIDENED,
    {0},
};

stk_status stk_cpu_sgd_update_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

stk_status stk_cpu_adam_update_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, impls, out);
}

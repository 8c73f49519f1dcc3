#include "device/cpu/batch_norm.h"

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const stk_batch_norm_state *s = p;
    for (int i = 0; i < 2; i++)
        stk_cpu_parallel(s->n_threads, s->body[i], &(stk_cpu_task){p, args});
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_tensor_desc x,
                       const stk_cpu_body *f32, const stk_cpu_body *f64, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(stk_batch_norm_state), run, out));
    stk_batch_norm_state *s = out->state;
    s->body = x.dtype == STK_F64 ? f64 : f32;
    s->n_channels = x.shape.dim[x.shape.rank - 1];
    s->n_rows = stk_shape_product(x.shape, 0, x.shape.rank - 1);
    s->eps = call->attrs->batch_norm.eps;
    s->momentum = call->attrs->batch_norm.momentum;
    s->unbiased = call->attrs->batch_norm.unbiased;
    s->relu = call->attrs->batch_norm.relu;
    s->n_threads = stk_cpu_threads_for((double)s->n_rows * (double)s->n_channels * 3, device->base.n_threads);
    out->scratch_bytes = (size_t)(STK_BATCH_NORM_SLOTS * stk_batch_norm_padded(s->n_channels) * s->n_threads) * 8;
    return STK_OK;
}

stk_status stk_cpu_batch_norm_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_batch_norm_table *table = stk_batch_norm_of(device->isa);
    if (call->in[0].dtype != STK_F32 && call->in[0].dtype != STK_F64)
        return stk_cpu_widen_kernel(device, call, stk_cpu_batch_norm_kernel, out);
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], table->forward_f32, table->forward_f64, out));
    /* y over x, and the running statistics over themselves. */
    out->in_place[0] = 1;
    out->in_place[3] = 1u << 3;
    out->in_place[4] = 1u << 4;
    return STK_OK;
}

stk_status stk_cpu_batch_norm_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_batch_norm_table *table = stk_batch_norm_of(device->isa);
    if (call->in[1].dtype != STK_F32 && call->in[1].dtype != STK_F64)
        return stk_cpu_widen_kernel(device, call, stk_cpu_batch_norm_grad_kernel, out);
    STK_RETURN_IF_ERROR(make(device, call, call->in[1], table->grad_f32, table->grad_f64, out));
    /* dx over dy or x. */
    out->in_place[0] = 3;
    return STK_OK;
}

static stk_status run_apply(const void *p, const stk_kernel_args *args)
{
    const stk_batch_norm_state *s = p;
    stk_cpu_parallel(s->n_threads, s->body[0], &(stk_cpu_task){p, args});
    return STK_OK;
}

stk_status stk_cpu_batch_norm_apply_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_batch_norm_table *table = stk_batch_norm_of(device->isa);
    if (call->in[0].dtype != STK_F32 && call->in[0].dtype != STK_F64)
        return stk_cpu_widen_kernel(device, call, stk_cpu_batch_norm_apply_kernel, out);
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], &table->apply_f32, &table->apply_f64, out));
    out->run = run_apply;
    out->in_place[0] = 1;
    return STK_OK;
}

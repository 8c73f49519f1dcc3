#include "device/cpu/norm/batch_norm.h"

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const stk_batch_norm_state *s = p;
    for (int i = 0; i < 2; i++)
        stk_cpu_parallel(s->n_threads, s->body[i], &(stk_cpu_task){p, args});
    return STK_OK;
}

static const stk_batch_norm_fns *fns_of(const stk_cpu_device *device, stk_tensor_desc x)
{
#ifdef STK_ISA_X86
    if (x.dtype == STK_BF16 && stk_isa_has_bf16(device->isa)) return &stk_batch_norm_avx512bf16;
#endif
    return &stk_batch_norm_of(device->isa)->fns[x.dtype];
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_tensor_desc x,
                       const stk_cpu_body *body, stk_kernel *out)
{
    if (!body[0]) return stk_cpu_unsupported(call);
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(stk_batch_norm_state), run, out));
    stk_batch_norm_state *s = out->state;
    s->body = body;
    s->n_channels = x.shape.dim[x.shape.rank - 1];
    s->n_rows = stk_shape_product(x.shape, 0, x.shape.rank - 1);
    s->eps = call->attrs->batch_norm.eps;
    s->momentum = call->attrs->batch_norm.momentum;
    s->unbiased = call->attrs->batch_norm.unbiased;
    s->relu = call->attrs->batch_norm.relu;
    s->has_residual = call->op != STK_OP_batch_norm_grad && call->n_in == 6;
    s->is_large = stk_is_past_caches(stk_desc_bytes(x));
    s->n_threads = stk_cpu_threads_for((double)s->n_rows * (double)s->n_channels * 3, device->base.n_threads);
    out->scratch_bytes = (size_t)(STK_BATCH_NORM_SLOTS * stk_batch_norm_padded(s->n_channels) * s->n_threads) * 8;
    return STK_OK;
}

enum { RESIDUAL = 1 << 5 };

stk_status stk_cpu_batch_norm_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], fns_of(device, call->in[0])->forward, out));
    /* y over x or the residual, and the running statistics over themselves. */
    out->in_place[0] = 1 | RESIDUAL;
    out->in_place[3] = 1u << 3;
    out->in_place[4] = 1u << 4;
    return STK_OK;
}

stk_status stk_cpu_batch_norm_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, call, call->in[1], fns_of(device, call->in[1])->grad, out));
    /* dx over dy or x. */
    out->in_place[0] = 3;
    return STK_OK;
}

stk_status stk_cpu_batch_norm_sum_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    enum { DX = 0, D = 3, X = 1, DY = 2, DY2 = 4, Y = 8 }; /* outputs; bits of inputs */
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], fns_of(device, call->in[0])->sum_grad, out));
    ((stk_batch_norm_state *)out->state)->relu = false;
    /* The first sweep writes d and has then read all but x. dx best lies over x, which is in the cache when it is
     * written. */
    out->in_place[DX] = X | DY | DY2 | Y;
    out->in_place[D] = DY | DY2 | Y;
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
    STK_RETURN_IF_ERROR(make(device, call, call->in[0], fns_of(device, call->in[0])->apply, out));
    out->run = run_apply;
    out->in_place[0] = 1 | RESIDUAL;
    return STK_OK;
}

/* Moving elements: broadcast, reshape, transpose, slice and its gradient, pad, concat. */
#include <string.h>

#include "device/reference/reference.h"

static void copy_element(size_t bytes, void *dst, int64_t i_dst, const void *src, int64_t i_src)
{
    memcpy((char *)dst + (size_t)i_dst * bytes, (const char *)src + (size_t)i_src * bytes, bytes);
}

/* y[i] = x[offset of i under stride] for every element of y. */
static void gather(stk_tensor_desc y, const int64_t stride[STK_MAX_RANK], int64_t first, const void *src, void *dst)
{
    int64_t n = stk_shape_count(y.shape);
    for (int64_t i = 0; i < n; i++)
        copy_element(stk_dtype_bytes(y.dtype), dst, i, src, first + stk_ref_offset(y.shape, i, stride));
}

/* dst[first + offset of i under stride] = x[i] for every element of x. */
static void scatter(stk_tensor_desc x, const int64_t stride[STK_MAX_RANK], int64_t first, const void *src, void *dst)
{
    int64_t n = stk_shape_count(x.shape);
    for (int64_t i = 0; i < n; i++)
        copy_element(stk_dtype_bytes(x.dtype), dst, first + stk_ref_offset(x.shape, i, stride), src, i);
}

static stk_status run_broadcast(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_shape x = call->in[0].shape, y = call->out[0].shape;
    int64_t stride_x[STK_MAX_RANK], stride[STK_MAX_RANK] = {0};
    stk_ref_strides(x, stride_x);
    for (int i = 0; i < x.rank; i++)
        stride[i + y.rank - x.rank] = x.dim[i] == 1 ? 0 : stride_x[i];
    gather(call->out[0], stride, 0, args->in[0], args->out[0]);
    return STK_OK;
}

static stk_status run_reshape(const stk_op_call *call, const stk_kernel_args *args)
{
    size_t bytes = stk_desc_bytes(call->in[0]);
    if (bytes && args->out[0] != args->in[0]) memcpy(args->out[0], args->in[0], bytes);
    return STK_OK;
}

static stk_status run_transpose(const stk_op_call *call, const stk_kernel_args *args)
{
    int64_t stride_x[STK_MAX_RANK], stride[STK_MAX_RANK] = {0};
    stk_ref_strides(call->in[0].shape, stride_x);
    for (int i = 0; i < call->out[0].shape.rank; i++)
        stride[i] = stride_x[call->attrs->permutation[i]];
    gather(call->out[0], stride, 0, args->in[0], args->out[0]);
    return STK_OK;
}

/* Strides and first element of the part of `whole` that the slice takes. */
static int64_t slice_strides(const stk_attrs *attrs, stk_shape whole, int64_t stride[STK_MAX_RANK])
{
    int64_t first = 0;
    stk_ref_strides(whole, stride);
    for (int i = 0; i < whole.rank; i++) {
        first += attrs->slice.start[i] * stride[i];
        stride[i] *= attrs->slice.step[i];
    }
    return first;
}

static stk_status run_slice(const stk_op_call *call, const stk_kernel_args *args)
{
    int64_t stride[STK_MAX_RANK], first = slice_strides(call->attrs, call->in[0].shape, stride);
    gather(call->out[0], stride, first, args->in[0], args->out[0]);
    return STK_OK;
}

static stk_status run_slice_grad(const stk_op_call *call, const stk_kernel_args *args)
{
    int64_t stride[STK_MAX_RANK], first = slice_strides(call->attrs, call->out[0].shape, stride);
    size_t bytes = stk_desc_bytes(call->out[0]);
    if (bytes) memset(args->out[0], 0, bytes);
    scatter(call->in[0], stride, first, args->in[0], args->out[0]);
    return STK_OK;
}

static stk_status run_pad(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_shape y = call->out[0].shape;
    int64_t stride[STK_MAX_RANK], first = 0, n = stk_shape_count(y);
    stk_ref_strides(y, stride);
    for (int i = 0; i < y.rank; i++)
        first += call->attrs->pad.low[i] * stride[i];
    for (int64_t i = 0; i < n; i++)
        stk_ref_store(call->out[0].dtype, args->out[0], i, call->attrs->pad.value);
    scatter(call->in[0], stride, first, args->in[0], args->out[0]);
    return STK_OK;
}

static stk_status run_concat(const stk_op_call *call, const stk_kernel_args *args)
{
    int axis = call->attrs->concat.axis;
    int64_t stride[STK_MAX_RANK], at = 0;
    stk_ref_strides(call->out[0].shape, stride);
    for (int i = 0; i < call->n_in; i++) {
        scatter(call->in[i], stride, at * stride[axis], args->in[i], args->out[0]);
        at += call->in[i].shape.dim[axis];
    }
    return STK_OK;
}

stk_status stk_ref_broadcast_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_broadcast, 0, out);
}

stk_status stk_ref_reshape_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_reshape, 1, out);
}

stk_status stk_ref_transpose_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_transpose, 0, out);
}

stk_status stk_ref_slice_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_slice, 0, out);
}

stk_status stk_ref_slice_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_slice_grad, 0, out);
}

stk_status stk_ref_pad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_pad, 0, out);
}

stk_status stk_ref_concat_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_concat, 0, out);
}

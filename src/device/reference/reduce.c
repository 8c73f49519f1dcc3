/* Sum, mean and maximum over axes: floats in double, integers in 64 bits. */
#include <math.h>

#include "device/reference/reference.h"

/* The strides of y as seen from x: 0 along the axes that are reduced. */
static void output_strides(stk_shape x, uint32_t axes, stk_shape y, int64_t stride[STK_MAX_RANK])
{
    int64_t stride_y[STK_MAX_RANK];
    stk_ref_strides(y, stride_y);
    for (int i = 0, j = 0; i < x.rank; i++)
        stride[i] = axes >> i & 1 ? 0 : stride_y[j++];
}

/* acc holds one number for each element of y. */
static void accumulate(const stk_op_call *call, const void *src, stk_ref_number *acc)
{
    stk_shape x = call->in[0].shape;
    stk_dtype dtype = call->in[0].dtype;
    int64_t stride[STK_MAX_RANK], n = stk_shape_count(x);
    static const int kinds[STK_N_REDUCE] = {[STK_REDUCE_SUM] = STK_BINARY_add,
                                            [STK_REDUCE_MEAN] = STK_BINARY_add,
                                            [STK_REDUCE_MAX] = STK_BINARY_max,
                                            [STK_REDUCE_MIN] = STK_BINARY_min,
                                            [STK_REDUCE_PROD] = STK_BINARY_mul};
    int kind = kinds[call->attrs->reduce.kind];
    output_strides(x, call->attrs->reduce.axes, call->out[0].shape, stride);
    for (int64_t i = 0; i < n; i++) {
        stk_ref_number *to = &acc[stk_ref_offset(x, i, stride)];
        *to = stk_ref_binary(kind, dtype, *to, stk_ref_get(dtype, src, i));
    }
}

static int64_t lowest_integer(stk_dtype dtype)
{
    switch (dtype) {
    case STK_I64: return INT64_MIN;
    case STK_I32: return INT32_MIN;
    case STK_I8: return INT8_MIN;
    default: return 0;
    }
}

static int64_t highest_integer(stk_dtype dtype)
{
    switch (dtype) {
    case STK_I64: return INT64_MAX;
    case STK_I32: return INT32_MAX;
    case STK_I8: return INT8_MAX;
    default: return UINT8_MAX;
    }
}

/* What the accumulator of a kind starts with. */
static stk_ref_number first_of(int kind, stk_dtype dtype)
{
    bool is_float = stk_dtype_is_float(dtype);
    switch (kind) {
    case STK_REDUCE_MAX:
        return is_float ? (stk_ref_number){.f = -INFINITY} : (stk_ref_number){.i = lowest_integer(dtype)};
    case STK_REDUCE_MIN:
        return is_float ? (stk_ref_number){.f = INFINITY} : (stk_ref_number){.i = highest_integer(dtype)};
    case STK_REDUCE_PROD: return is_float ? (stk_ref_number){.f = 1} : (stk_ref_number){.i = 1};
    default: return is_float ? (stk_ref_number){.f = 0} : (stk_ref_number){.i = 0};
    }
}

static stk_status run(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_dtype dtype = call->in[0].dtype;
    stk_ref_number *acc = args->scratch, first = first_of(call->attrs->reduce.kind, dtype);
    int64_t n_out = stk_shape_count(call->out[0].shape);
    double n_each = 1;
    for (int i = 0; i < call->in[0].shape.rank; i++)
        if (call->attrs->reduce.axes >> i & 1) n_each *= (double)call->in[0].shape.dim[i];
    for (int64_t i = 0; i < n_out; i++)
        acc[i] = first;
    accumulate(call, args->in[0], acc);
    for (int64_t i = 0; i < n_out; i++) {
        if (call->attrs->reduce.kind == STK_REDUCE_MEAN) acc[i].f /= n_each;
        stk_ref_put(call->out[0].dtype, args->out[0], i, acc[i]);
    }
    return STK_OK;
}

stk_status stk_ref_reduce_kernel(const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_ref_make_plain(call, run, 0, out));
    out->scratch_bytes = (size_t)stk_shape_count(call->out[0].shape) * sizeof(stk_ref_number);
    return STK_OK;
}

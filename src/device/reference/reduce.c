#include "device/reference/reduce.h"

#include <math.h>

/* The strides of y as seen from x: 0 along the axes that are reduced. */
static void output_strides(stk_shape x, uint32_t axes, stk_shape y, int64_t stride[STK_MAX_RANK])
{
    int64_t stride_y[STK_MAX_RANK];
    stk_ref_strides(y, stride_y);
    for (int i = 0, j = 0; i < x.rank; i++)
        stride[i] = axes >> i & 1 ? 0 : stride_y[j++];
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

void stk_ref_reduce_start(stk_ref_reducer *r, int kind, uint32_t axes, stk_tensor_desc x, stk_shape y,
                          stk_ref_number *acc)
{
    *r = (stk_ref_reducer){.kind = kind, .x = x, .n_out = stk_shape_count(y), .n_each = 1, .acc = acc};
    output_strides(x.shape, axes, y, r->stride);
    for (int i = 0; i < x.shape.rank; i++)
        if (axes >> i & 1) r->n_each *= (double)x.shape.dim[i];
    for (int64_t i = 0; i < r->n_out; i++)
        acc[i] = first_of(kind, x.dtype);
}

void stk_ref_reduce_take(const stk_ref_reducer *r, int64_t i, stk_ref_number element)
{
    static const int kinds[STK_N_REDUCE] = {[STK_REDUCE_SUM] = STK_BINARY_add,
                                            [STK_REDUCE_MEAN] = STK_BINARY_add,
                                            [STK_REDUCE_MAX] = STK_BINARY_max,
                                            [STK_REDUCE_MIN] = STK_BINARY_min,
                                            [STK_REDUCE_PROD] = STK_BINARY_mul};
    stk_ref_number *to = &r->acc[stk_ref_offset(r->x.shape, i, r->stride)];
    *to = stk_ref_binary(kinds[r->kind], r->x.dtype, *to, element);
}

void stk_ref_reduce_finish(const stk_ref_reducer *r, stk_dtype dtype, void *dst)
{
    for (int64_t i = 0; i < r->n_out; i++) {
        if (r->kind == STK_REDUCE_MEAN) r->acc[i].f /= r->n_each;
        stk_ref_put(dtype, dst, i, r->acc[i]);
    }
}

static stk_status run(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_ref_reducer r;
    stk_ref_reduce_start(&r, call->attrs->reduce.kind, call->attrs->reduce.axes, call->in[0], call->out[0].shape,
                         args->scratch);
    for (int64_t i = 0, n = stk_shape_count(call->in[0].shape); i < n; i++)
        stk_ref_reduce_take(&r, i, stk_ref_get(call->in[0].dtype, args->in[0], i));
    stk_ref_reduce_finish(&r, call->out[0].dtype, args->out[0]);
    return STK_OK;
}

stk_status stk_ref_reduce_kernel(const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_ref_make_plain(call, run, 0, out));
    out->scratch_bytes = (size_t)stk_shape_count(call->out[0].shape) * sizeof(stk_ref_number);
    return STK_OK;
}

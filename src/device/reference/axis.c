/* Along one axis: iota, argmax, cumsum. */
#include <math.h>

#include "device/reference/reference.h"

/* Elements behind the axis. */
static int64_t inner_of(stk_shape shape, int axis)
{
    return stk_shape_product(shape, axis + 1, shape.rank);
}

static stk_status run_iota(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_tensor_desc y = call->out[0];
    int64_t n = stk_shape_count(y.shape), n_inner = inner_of(y.shape, call->attrs->axis);
    for (int64_t i = 0; i < n; i++) {
        int64_t index = i / n_inner % y.shape.dim[call->attrs->axis];
        stk_ref_put(y.dtype, args->out[0], i, stk_ref_cast(y.dtype, STK_I64, (stk_ref_number){.i = index}));
    }
    return STK_OK;
}

static bool is_before(stk_dtype dtype, stk_ref_number a, stk_ref_number b, bool last)
{
    bool is_float = stk_dtype_is_float(dtype), a_nan = is_float && isnan(a.f), b_nan = is_float && isnan(b.f);
    if (a_nan || b_nan) return b_nan && (last || !a_nan);
    bool less = stk_ref_compare(STK_COMPARE_less, dtype, a, b);
    return less || (last && stk_ref_compare(STK_COMPARE_equal, dtype, a, b));
}

static stk_status run_argmax(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_tensor_desc x = call->in[0];
    int axis = call->attrs->argmax.axis;
    int64_t n_inner = inner_of(x.shape, axis), n_out = stk_shape_count(call->out[0].shape), n = x.shape.dim[axis];
    for (int64_t i = 0; i < n_out; i++) {
        int64_t first = i / n_inner * n * n_inner + i % n_inner, best = 0;
        for (int64_t k = 1; k < n; k++)
            if (is_before(x.dtype, stk_ref_get(x.dtype, args->in[0], first + best * n_inner),
                          stk_ref_get(x.dtype, args->in[0], first + k * n_inner), call->attrs->argmax.last))
                best = k;
        ((int32_t *)args->out[0])[i] = (int32_t)best;
    }
    return STK_OK;
}

static stk_status run_cumsum(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_tensor_desc x = call->in[0];
    int axis = call->attrs->cumsum.axis;
    int64_t n_inner = inner_of(x.shape, axis), n_outer = stk_shape_product(x.shape, 0, axis), n = x.shape.dim[axis];
    for (int64_t i = 0; i < n_outer * n_inner; i++) {
        int64_t first = i / n_inner * n * n_inner + i % n_inner;
        stk_ref_number sum = {.i = 0};
        if (stk_dtype_is_float(x.dtype)) sum.f = 0;
        for (int64_t k = 0; k < n; k++) {
            int64_t at = first + (call->attrs->cumsum.reverse ? n - 1 - k : k) * n_inner;
            stk_ref_number here = stk_ref_get(x.dtype, args->in[0], at), before = sum;
            sum = stk_ref_binary(STK_BINARY_add, x.dtype, sum, here);
            stk_ref_put(x.dtype, args->out[0], at, call->attrs->cumsum.exclusive ? before : sum);
        }
    }
    return STK_OK;
}

stk_status stk_ref_iota_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_iota, 0, out);
}

stk_status stk_ref_argmax_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_argmax, 0, out);
}

stk_status stk_ref_cumsum_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_cumsum, 1, out);
}

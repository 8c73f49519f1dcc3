/* Element by element: unary, binary, compare, select, cast, constant and dropout. */
#include "device/reference/reference.h"
#include "graph/dropout.h"

/* Output 0 may replace any input with as many bytes: each element is read before it is written. Elements must be
 * equally wide too, which equal counts and bytes imply. */
static stk_status make(const stk_op_call *call, stk_ref_plain body, stk_kernel *out)
{
    return stk_ref_make_plain(call, body, stk_ref_same_bytes(call, 0), out);
}

static stk_status run_constant(const stk_op_call *call, const stk_kernel_args *args)
{
    int64_t n = stk_shape_count(call->out[0].shape);
    for (int64_t i = 0; i < n; i++)
        stk_ref_store(call->out[0].dtype, args->out[0], i, call->attrs->constant.value);
    return STK_OK;
}

static stk_status run_unary(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_dtype dtype = call->in[0].dtype;
    int64_t n = stk_shape_count(call->out[0].shape);
    for (int64_t i = 0; i < n; i++) {
        stk_ref_number x = stk_ref_get(dtype, args->in[0], i);
        stk_ref_put(dtype, args->out[0], i, stk_ref_unary(call->attrs->element.kind, dtype, x));
    }
    return STK_OK;
}

static stk_status run_binary(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_dtype dtype = call->in[0].dtype;
    int64_t n = stk_shape_count(call->out[0].shape);
    for (int64_t i = 0; i < n; i++) {
        stk_ref_number a = stk_ref_get(dtype, args->in[0], i), b = stk_ref_get(dtype, args->in[1], i);
        stk_ref_put(dtype, args->out[0], i, stk_ref_binary(call->attrs->element.kind, dtype, a, b));
    }
    return STK_OK;
}

static stk_status run_compare(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_dtype dtype = call->in[0].dtype;
    int64_t n = stk_shape_count(call->out[0].shape);
    for (int64_t i = 0; i < n; i++) {
        stk_ref_number a = stk_ref_get(dtype, args->in[0], i), b = stk_ref_get(dtype, args->in[1], i);
        ((uint8_t *)args->out[0])[i] = stk_ref_compare(call->attrs->element.kind, dtype, a, b);
    }
    return STK_OK;
}

static stk_status run_select(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_dtype dtype = call->out[0].dtype;
    int64_t n = stk_shape_count(call->out[0].shape);
    for (int64_t i = 0; i < n; i++) {
        bool condition = ((const uint8_t *)args->in[0])[i] != 0;
        stk_ref_put(dtype, args->out[0], i, stk_ref_get(dtype, args->in[condition ? 1 : 2], i));
    }
    return STK_OK;
}

static stk_status run_cast(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_dtype from = call->in[0].dtype, to = call->out[0].dtype;
    int64_t n = stk_shape_count(call->out[0].shape);
    for (int64_t i = 0; i < n; i++)
        stk_ref_put(to, args->out[0], i, stk_ref_cast(to, from, stk_ref_get(from, args->in[0], i)));
    return STK_OK;
}

static stk_status run_dropout(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_dtype dtype = call->in[0].dtype;
    stk_shape shape = call->in[0].shape;
    double rate = call->attrs->dropout.rate;
    uint64_t key = stk_dropout_key(*(const int64_t *)args->in[1], call->attrs->dropout.stream);
    int64_t sample = *(const int64_t *)args->in[2];
    int64_t n_rows = shape.rank ? shape.dim[0] : 1,
            n_columns = shape.rank ? stk_shape_product(shape, 1, shape.rank) : 1;
    for (int64_t row = 0; row < n_rows; row++) {
        for (int64_t e = 0; e < n_columns; e++) {
            int64_t i = row * n_columns + e;
            double x = stk_ref_load(dtype, args->in[0], i);
            bool keeps = stk_dropout_keeps(key, sample, row, e, rate);
            stk_ref_store(dtype, args->out[0], i, keeps ? x * (1 / (1 - rate)) : 0);
        }
    }
    return STK_OK;
}

stk_status stk_ref_constant_kernel(const stk_op_call *call, stk_kernel *out)
{
    return make(call, run_constant, out);
}

stk_status stk_ref_unary_kernel(const stk_op_call *call, stk_kernel *out)
{
    return make(call, run_unary, out);
}

stk_status stk_ref_binary_kernel(const stk_op_call *call, stk_kernel *out)
{
    return make(call, run_binary, out);
}

stk_status stk_ref_compare_kernel(const stk_op_call *call, stk_kernel *out)
{
    return make(call, run_compare, out);
}

stk_status stk_ref_select_kernel(const stk_op_call *call, stk_kernel *out)
{
    return make(call, run_select, out);
}

stk_status stk_ref_cast_kernel(const stk_op_call *call, stk_kernel *out)
{
    return make(call, run_cast, out);
}

stk_status stk_ref_dropout_kernel(const stk_op_call *call, stk_kernel *out)
{
    /* Only x: seed and sample are read for as long as the kernel runs. */
    return stk_ref_make_plain(call, run_dropout, 1, out);
}

/* Elements along an axis by number, and elements added up by number. */
#include <string.h>

#include "device/reference/reference.h"

/* x as [n_outer, n_axis, n_inner] around the axis. */
typedef struct axis_split {
    int64_t n_outer, n_axis, n_inner;
} axis_split;

static axis_split split_at(stk_shape x, int axis)
{
    return (axis_split){stk_shape_product(x, 0, axis), x.dim[axis], stk_shape_product(x, axis + 1, x.rank)};
}

static stk_status check_id(double id, int64_t i, int64_t n_axis)
{
    if (id >= 0 && id < (double)n_axis) return STK_OK;
    return stk_fail(STK_NO_ROW, "id %.0f at position %lld is not one of the %lld rows", id, (long long)i,
                    (long long)n_axis);
}

static stk_status run_gather(const stk_op_call *call, const stk_kernel_args *args)
{
    axis_split s = split_at(call->in[0].shape, call->attrs->axis);
    int64_t n_ids = stk_shape_count(call->in[1].shape);
    size_t bytes = (size_t)s.n_inner * stk_dtype_bytes(call->in[0].dtype);
    const int32_t *ids = args->in[1];
    for (int64_t i = 0; i < n_ids; i++)
        STK_RETURN_IF_ERROR(check_id(ids[i], i, s.n_axis));
    for (int64_t i = 0; i < s.n_outer * n_ids && bytes; i++)
        memcpy((char *)args->out[0] + (size_t)i * bytes,
               (const char *)args->in[0] + (size_t)(i / n_ids * s.n_axis + ids[i % n_ids]) * bytes, bytes);
    return STK_OK;
}

static stk_status run_scatter_add(const stk_op_call *call, const double *const *in, double *const *out)
{
    axis_split s = split_at(call->out[0].shape, call->attrs->axis);
    int64_t n_ids = stk_shape_count(call->in[1].shape), n = stk_shape_count(call->out[0].shape);
    for (int64_t i = 0; i < n_ids; i++)
        STK_RETURN_IF_ERROR(check_id(in[1][i], i, s.n_axis));
    for (int64_t i = 0; i < n; i++)
        out[0][i] = call->n_in == 3 ? in[2][i] : 0;
    for (int64_t i = 0; i < s.n_outer * n_ids; i++)
        for (int64_t j = 0; j < s.n_inner; j++)
            out[0][(i / n_ids * s.n_axis + (int64_t)in[1][i % n_ids]) * s.n_inner + j] += in[0][i * s.n_inner + j];
    return STK_OK;
}

stk_status stk_ref_gather_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_gather, 0, out);
}

stk_status stk_ref_scatter_add_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_scatter_add, out);
}

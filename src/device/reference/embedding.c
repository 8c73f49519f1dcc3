/* Rows of a weight by number, and rows added up by number. */
#include <string.h>

#include "device/reference/reference.h"

static stk_status check_ids(int64_t n, int64_t n_rows, const int32_t *ids)
{
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_rows)
            return stk_fail(STK_CORRUPT, "id %d at position %lld is not one of the %lld rows", (int)ids[i],
                            (long long)i, (long long)n_rows);
    return STK_OK;
}

static stk_status run_forward(const stk_op_call *call, const stk_kernel_args *args)
{
    stk_shape weight = call->in[0].shape;
    int64_t n = stk_shape_count(call->in[1].shape);
    size_t bytes = (size_t)weight.dim[1] * stk_dtype_bytes(call->in[0].dtype);
    const int32_t *ids = args->in[1];
    STK_RETURN_IF_ERROR(check_ids(n, weight.dim[0], ids));
    for (int64_t i = 0; i < n && bytes; i++)
        memcpy((char *)args->out[0] + (size_t)i * bytes, (const char *)args->in[0] + (size_t)ids[i] * bytes, bytes);
    return STK_OK;
}

static stk_status run_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape weight = call->out[0].shape;
    int64_t n = stk_shape_count(call->in[1].shape), width = weight.dim[1], n_weight = stk_shape_count(weight);
    for (int64_t i = 0; i < n_weight; i++)
        out[0][i] = call->n_in == 3 ? in[2][i] : 0;
    for (int64_t i = 0; i < n; i++) {
        if (in[1][i] < 0 || in[1][i] >= (double)weight.dim[0])
            return stk_fail(STK_CORRUPT, "id %.0f at position %lld is not one of the %lld rows", in[1][i], (long long)i,
                            (long long)weight.dim[0]);
        for (int64_t j = 0; j < width; j++)
            out[0][(int64_t)in[1][i] * width + j] += in[0][i * width + j];
    }
    return STK_OK;
}

stk_status stk_ref_embedding_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_plain(call, run_forward, 0, out);
}

stk_status stk_ref_embedding_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad, out);
}

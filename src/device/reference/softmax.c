/* Softmax over the last axis and its gradient. */
#include <math.h>

#include "device/reference/reference.h"

static stk_status run_forward(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape shape = call->in[0].shape;
    int64_t n = shape.dim[shape.rank - 1], n_rows = stk_shape_product(shape, 0, shape.rank - 1);
    for (int64_t row = 0; row < n_rows; row++) {
        const double *x = in[0] + row * n;
        double *y = out[0] + row * n, most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++)
            most = isnan(x[i]) || x[i] > most ? x[i] : most;
        for (int64_t i = 0; i < n; i++)
            sum += exp(x[i] - most);
        for (int64_t i = 0; i < n; i++)
            y[i] = exp(x[i] - most) / sum;
    }
    return STK_OK;
}

static stk_status run_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape shape = call->in[0].shape;
    int64_t n = shape.dim[shape.rank - 1], n_rows = stk_shape_product(shape, 0, shape.rank - 1);
    for (int64_t row = 0; row < n_rows; row++) {
        const double *y = in[0] + row * n, *dy = in[1] + row * n;
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += y[i] * dy[i];
        for (int64_t i = 0; i < n; i++)
            out[0][row * n + i] = y[i] * (dy[i] - sum);
    }
    return STK_OK;
}

stk_status stk_ref_softmax_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_forward, out);
}

stk_status stk_ref_softmax_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad, out);
}

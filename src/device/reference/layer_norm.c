/* Layer normalisation, row by row, and its gradient. Ba et al. 2016. */
#include <math.h>

#include "device/reference/reference.h"

static stk_status run_forward(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape shape = call->in[0].shape;
    int64_t n = shape.dim[shape.rank - 1], n_rows = stk_shape_product(shape, 0, shape.rank - 1);
    const double *scale = in[1], *bias = in[2];
    for (int64_t row = 0; row < n_rows; row++) {
        const double *x = in[0] + row * n;
        double mean = 0, var = 0;
        for (int64_t i = 0; i < n; i++)
            mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            var += (x[i] - mean) * (x[i] - mean) / (double)n;
        double inv_std = 1 / sqrt(var + call->attrs->layer_norm.eps);
        for (int64_t i = 0; i < n; i++)
            out[0][row * n + i] = (x[i] - mean) * inv_std * scale[i] + bias[i];
        out[1][row] = mean;
        out[2][row] = inv_std;
    }
    return STK_OK;
}

static stk_status run_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape shape = call->in[1].shape;
    int64_t n = shape.dim[shape.rank - 1], n_rows = stk_shape_product(shape, 0, shape.rank - 1);
    const double *scale = in[2], *mean = in[3], *inv_std = in[4];
    double *dscale = out[1], *dbias = out[2];
    for (int64_t i = 0; i < n; i++)
        dscale[i] = dbias[i] = 0;
    for (int64_t row = 0; row < n_rows; row++) {
        const double *dy = in[0] + row * n, *x = in[1] + row * n;
        double sum = 0, product = 0;
        for (int64_t i = 0; i < n; i++) {
            double normal = (x[i] - mean[row]) * inv_std[row];
            sum += dy[i] * scale[i] / (double)n;
            product += dy[i] * scale[i] * normal / (double)n;
            dscale[i] += dy[i] * normal;
            dbias[i] += dy[i];
        }
        for (int64_t i = 0; i < n; i++) {
            double normal = (x[i] - mean[row]) * inv_std[row];
            out[0][row * n + i] = inv_std[row] * (dy[i] * scale[i] - sum - normal * product);
        }
    }
    return STK_OK;
}

stk_status stk_ref_layer_norm_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_forward, out);
}

stk_status stk_ref_layer_norm_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad, out);
}

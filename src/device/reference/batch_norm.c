/* Batch normalisation in training, channel by channel, and its gradient. Ioffe & Szegedy 2015. */
#include <math.h>

#include "device/reference/reference.h"

/* Mean and variance (divided by n) of channel c of x [n_rows, n_channels]; zeros for no rows. */
static void measure(const double *x, int64_t n_rows, int64_t n_channels, int64_t c, double *mean, double *var)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n_rows; i++)
        sum += x[i * n_channels + c];
    *mean = n_rows ? sum / (double)n_rows : 0;
    for (int64_t i = 0; i < n_rows; i++) {
        double distance = x[i * n_channels + c] - *mean;
        squares += distance * distance;
    }
    *var = n_rows ? squares / (double)n_rows : 0;
}

static stk_status run_forward(const stk_op_call *call, const double *const *in, double *const *out)
{
    const double *x = in[0], *scale = in[1], *bias = in[2], *running_mean = in[3], *running_var = in[4];
    const double *residual = call->n_in == 6 ? in[5] : NULL;
    stk_shape shape = call->in[0].shape;
    int64_t n_channels = shape.dim[shape.rank - 1], n_rows = stk_shape_product(shape, 0, shape.rank - 1);
    for (int64_t c = 0; c < n_channels; c++) {
        double mean, var;
        measure(x, n_rows, n_channels, c, &mean, &var);
        double inv_std = 1 / sqrt(var + call->attrs->batch_norm.eps);
        for (int64_t i = c; i < n_rows * n_channels; i += n_channels) {
            double y = (x[i] - mean) * inv_std * scale[c] + bias[c] + (residual ? residual[i] : 0);
            out[0][i] = call->attrs->batch_norm.relu && y <= 0 ? 0 : y;
        }
        out[1][c] = mean;
        out[2][c] = inv_std;
        /* An empty batch says nothing about the data; of one row there is no unbiased variance. */
        double momentum = n_rows ? call->attrs->batch_norm.momentum : 0;
        if (call->attrs->batch_norm.unbiased && n_rows > 1) var *= (double)n_rows / (double)(n_rows - 1);
        out[3][c] = running_mean[c] * (1 - momentum) + mean * momentum;
        out[4][c] = running_var[c] * (1 - momentum) + var * momentum;
    }
    return STK_OK;
}

static stk_status run_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    const double *dy = in[0], *x = in[1], *scale = in[2], *bias = in[3], *mean = in[4], *inv_std = in[5];
    stk_shape shape = call->in[1].shape;
    int64_t n_channels = shape.dim[shape.rank - 1], n_rows = stk_shape_product(shape, 0, shape.rank - 1);
    bool relu = call->attrs->batch_norm.relu;
    for (int64_t c = 0; c < n_channels; c++) {
        double dscale = 0, dbias = 0;
        for (int64_t i = c; i < n_rows * n_channels; i += n_channels) {
            double normal = (x[i] - mean[c]) * inv_std[c];
            double d = relu && !(normal * scale[c] + bias[c] > 0) ? 0 : dy[i];
            dscale += d * normal;
            dbias += d;
        }
        for (int64_t i = c; i < n_rows * n_channels; i += n_channels) {
            double normal = (x[i] - mean[c]) * inv_std[c];
            double d = relu && !(normal * scale[c] + bias[c] > 0) ? 0 : dy[i];
            out[0][i] = scale[c] * inv_std[c] * (d - dbias / (double)n_rows - normal * dscale / (double)n_rows);
        }
        out[1][c] = dscale;
        out[2][c] = dbias;
    }
    return STK_OK;
}

static stk_status run_sum_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    const double *x = in[0], *dy = in[1], *dy2 = in[2], *y = in[3], *scale = in[4], *mean = in[5], *inv_std = in[6];
    stk_shape shape = call->in[0].shape;
    int64_t n_channels = shape.dim[shape.rank - 1], n_rows = stk_shape_product(shape, 0, shape.rank - 1);
    for (int64_t c = 0; c < n_channels; c++) {
        double dscale = 0, dbias = 0;
        for (int64_t i = c; i < n_rows * n_channels; i += n_channels) {
            double d = y[i] > 0 ? dy[i] + dy2[i] : 0;
            dscale += d * (x[i] - mean[c]) * inv_std[c];
            dbias += d;
            out[3][i] = d;
        }
        for (int64_t i = c; i < n_rows * n_channels; i += n_channels) {
            double normal = (x[i] - mean[c]) * inv_std[c];
            double d = out[3][i] - dbias / (double)n_rows - normal * dscale / (double)n_rows;
            out[0][i] = scale[c] * inv_std[c] * d;
        }
        out[1][c] = dscale;
        out[2][c] = dbias;
    }
    return STK_OK;
}

static stk_status run_apply(const stk_op_call *call, const double *const *in, double *const *out)
{
    const double *x = in[0], *scale = in[1], *bias = in[2], *mean = in[3], *inv_std = in[4];
    const double *residual = call->n_in == 6 ? in[5] : NULL;
    stk_shape shape = call->in[0].shape;
    int64_t n_channels = shape.dim[shape.rank - 1], n = stk_shape_count(shape);
    for (int64_t i = 0; i < n; i++) {
        int64_t c = i % n_channels;
        double y = (x[i] - mean[c]) * inv_std[c] * scale[c] + bias[c] + (residual ? residual[i] : 0);
        out[0][i] = call->attrs->batch_norm.relu && y <= 0 ? 0 : y;
    }
    return STK_OK;
}

stk_status stk_ref_batch_norm_apply_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_apply, out);
}

stk_status stk_ref_batch_norm_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_forward, out);
}

stk_status stk_ref_batch_norm_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad, out);
}

stk_status stk_ref_batch_norm_sum_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_sum_grad, out);
}

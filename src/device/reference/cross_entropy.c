/* Cross-entropy of a softmax, its gradient, and in_top_k. */
#include <math.h>

#include "device/reference/reference.h"

/* Labels are class numbers where they have one axis less than the logits. */
static bool has_class_numbers(const stk_op_call *call)
{
    return call->in[1].shape.rank == 1;
}

static stk_status check_labels(const stk_op_call *call, const double *labels)
{
    int64_t n_rows = call->in[0].shape.dim[0], n_classes = call->in[0].shape.dim[1];
    for (int64_t row = 0; has_class_numbers(call) && row < n_rows; row++)
        if (labels[row] < 0 || labels[row] >= (double)n_classes)
            return stk_fail(STK_CORRUPT, "label %.0f of row %lld is not one of the %lld classes", labels[row],
                            (long long)row, (long long)n_classes);
    return STK_OK;
}

/* The share of class c in row number row, smoothed. */
static double target(const stk_op_call *call, const double *labels, int64_t row, int64_t c)
{
    int64_t n_classes = call->in[0].shape.dim[1];
    double smoothing = call->attrs->cross_entropy.smoothing;
    double share = has_class_numbers(call) ? (double)((int64_t)labels[row] == c) : labels[row * n_classes + c];
    return share * (1 - smoothing) + smoothing / (double)n_classes;
}

/* log(sum(exp(x))). */
static double log_sum_exp(const double *x, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = isnan(x[i]) || x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return log(sum) + most;
}

static stk_status run_forward(const stk_op_call *call, const double *const *in, double *const *out)
{
    int64_t n_rows = call->in[0].shape.dim[0], n_classes = call->in[0].shape.dim[1];
    STK_RETURN_IF_ERROR(check_labels(call, in[1]));
    for (int64_t row = 0; row < n_rows; row++) {
        const double *x = in[0] + row * n_classes;
        double norm = log_sum_exp(x, n_classes), loss = 0;
        for (int64_t c = 0; c < n_classes; c++) {
            /* A class without a share adds nothing, even where its logit is -inf. */
            double t = target(call, in[1], row, c);
            if (t != 0) loss -= t * (x[c] - norm);
        }
        out[0][row] = loss;
    }
    return STK_OK;
}

static stk_status run_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    int64_t n_rows = call->in[0].shape.dim[0], n_classes = call->in[0].shape.dim[1];
    STK_RETURN_IF_ERROR(check_labels(call, in[1]));
    for (int64_t row = 0; row < n_rows; row++) {
        const double *x = in[0] + row * n_classes;
        double norm = log_sum_exp(x, n_classes), total = 0;
        for (int64_t c = 0; c < n_classes; c++)
            total += target(call, in[1], row, c);
        for (int64_t c = 0; c < n_classes; c++)
            out[0][row * n_classes + c] = in[2][row] * (exp(x[c] - norm) * total - target(call, in[1], row, c));
    }
    return STK_OK;
}

static stk_status run_in_top_k(const stk_op_call *call, const double *const *in, double *const *out)
{
    int64_t n_rows = call->in[0].shape.dim[0], n_classes = call->in[0].shape.dim[1];
    STK_RETURN_IF_ERROR(check_labels(call, in[1]));
    for (int64_t row = 0; row < n_rows; row++) {
        const double *x = in[0] + row * n_classes;
        int64_t label = (int64_t)in[1][row], n_before = 0;
        for (int64_t c = 0; c < n_classes; c++)
            n_before += x[c] > x[label] || (x[c] == x[label] && c < label);
        /* A network that gives NaN has recognised nothing. */
        out[0][row] = n_before < call->attrs->in_top_k.k && !isnan(x[label]);
    }
    return STK_OK;
}

stk_status stk_ref_cross_entropy_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_forward, out);
}

stk_status stk_ref_cross_entropy_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad, out);
}

stk_status stk_ref_in_top_k_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_in_top_k, out);
}

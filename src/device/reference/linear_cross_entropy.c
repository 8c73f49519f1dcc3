/* Cross-entropy of a linear layer's logits, and its gradient: one row of logits at a time. */
#include <math.h>

#include "device/reference/reference.h"

typedef struct linear_loss {
    int64_t m, v, d, ignored;
    double smoothing;
    const double *x, *weight, *labels;
} linear_loss;

static linear_loss open_run(const stk_op_call *call, const double *const *in)
{
    stk_shape x = call->in[0].shape;
    return (linear_loss){.m = x.dim[0],
                         .v = call->in[1].shape.dim[0],
                         .d = x.dim[1],
                         .ignored = call->attrs->linear_cross_entropy.ignore_index,
                         .smoothing = call->attrs->linear_cross_entropy.smoothing,
                         .x = in[0],
                         .weight = in[1],
                         .labels = in[2]};
}

static bool is_ignored(const linear_loss *r, int64_t row)
{
    return (int64_t)r->labels[row] == r->ignored;
}

static stk_status check_labels(const linear_loss *r)
{
    for (int64_t row = 0; row < r->m; row++)
        if (!is_ignored(r, row) && (r->labels[row] < 0 || r->labels[row] >= (double)r->v))
            return stk_fail(STK_CORRUPT, "label %.0f of row %lld is not one of the %lld classes", r->labels[row],
                            (long long)row, (long long)r->v);
    return STK_OK;
}

static double logit(const linear_loss *r, int64_t row, int64_t c)
{
    double sum = 0;
    for (int64_t i = 0; i < r->d; i++)
        sum += r->x[row * r->d + i] * r->weight[c * r->d + i];
    return sum;
}

/* log(sum(exp(logits))) of a row. */
static double log_sum_exp(const linear_loss *r, int64_t row)
{
    double most = -INFINITY, sum = 0;
    for (int64_t c = 0; c < r->v; c++) {
        double x = logit(r, row, c);
        most = isnan(x) || x > most ? x : most;
    }
    for (int64_t c = 0; c < r->v; c++)
        sum += exp(logit(r, row, c) - most);
    return log(sum) + most;
}

/* The share of class c in a row, smoothed. */
static double target(const linear_loss *r, int64_t row, int64_t c)
{
    return ((int64_t)r->labels[row] == c) * (1 - r->smoothing) + r->smoothing / (double)r->v;
}

static double row_loss(const linear_loss *r, int64_t row, double lse)
{
    double loss = 0;
    for (int64_t c = 0; c < r->v; c++)
        /* A class without a share adds nothing, even where its logit is -inf. */
        if (target(r, row, c) != 0) loss -= target(r, row, c) * (logit(r, row, c) - lse);
    return loss;
}

static stk_status run_forward(const stk_op_call *call, const double *const *in, double *const *out)
{
    linear_loss r = open_run(call, in);
    STK_RETURN_IF_ERROR(check_labels(&r));
    for (int64_t row = 0; row < r.m; row++)
        out[0][row] = is_ignored(&r, row) ? 0 : row_loss(&r, row, log_sum_exp(&r, row));
    return STK_OK;
}

static stk_status run_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    linear_loss r = open_run(call, in);
    STK_RETURN_IF_ERROR(check_labels(&r));
    for (int64_t i = 0; i < r.m * r.d; i++)
        out[0][i] = 0;
    for (int64_t i = 0; i < r.v * r.d; i++)
        out[1][i] = call->n_in == 5 ? in[4][i] : 0;
    for (int64_t row = 0; row < r.m; row++) {
        out[2][row] = 0;
        if (is_ignored(&r, row)) continue;
        double lse = log_sum_exp(&r, row);
        out[2][row] = row_loss(&r, row, lse);
        for (int64_t c = 0; c < r.v; c++) {
            double dlogit = in[3][row] * (exp(logit(&r, row, c) - lse) - target(&r, row, c));
            for (int64_t i = 0; i < r.d; i++) {
                out[0][row * r.d + i] += dlogit * r.weight[c * r.d + i];
                out[1][c * r.d + i] += dlogit * r.x[row * r.d + i];
            }
        }
    }
    return STK_OK;
}

stk_status stk_ref_linear_cross_entropy_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_forward, out);
}

stk_status stk_ref_linear_cross_entropy_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad, out);
}

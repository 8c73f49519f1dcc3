/* Group normalisation, group by group, and its gradient. Wu & He 2018. */
#include <math.h>

#include "device/reference/reference.h"

/* x as [n_samples, n_rows, n_groups, n_each]. */
typedef struct group_split {
    int64_t n_samples, n_rows, n_groups, n_each, n_channels;
} group_split;

static group_split split_groups(stk_shape x, const stk_attrs *attrs)
{
    int64_t n_channels = x.dim[x.rank - 1], groups = attrs->group_norm.groups;
    return (group_split){x.dim[0], stk_shape_product(x, 1, x.rank - 1), groups, n_channels / groups, n_channels};
}

/* Where element number i of group number g of a sample lies, and its channel. */
static int64_t element_at(const group_split *s, int64_t sample, int64_t g, int64_t i, int64_t *channel)
{
    *channel = g * s->n_each + i % s->n_each;
    return (sample * s->n_rows + i / s->n_each) * s->n_channels + *channel;
}

static stk_status run_forward(const stk_op_call *call, const double *const *in, double *const *out)
{
    group_split s = split_groups(call->in[0].shape, call->attrs);
    int64_t n = s.n_rows * s.n_each, c;
    for (int64_t k = 0; k < s.n_samples * s.n_groups; k++) {
        int64_t sample = k / s.n_groups, g = k % s.n_groups;
        double mean = 0, var = 0;
        for (int64_t i = 0; i < n; i++)
            mean += in[0][element_at(&s, sample, g, i, &c)] / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double distance = in[0][element_at(&s, sample, g, i, &c)] - mean;
            var += distance * distance / (double)n;
        }
        double inv_std = 1 / sqrt(var + call->attrs->group_norm.eps);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = element_at(&s, sample, g, i, &c);
            out[0][at] = (in[0][at] - mean) * inv_std * in[1][c] + in[2][c];
        }
        out[1][k] = mean;
        out[2][k] = inv_std;
    }
    return STK_OK;
}

static stk_status run_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    group_split s = split_groups(call->in[1].shape, call->attrs);
    const double *dy = in[0], *x = in[1], *scale = in[2], *mean = in[3], *inv_std = in[4];
    int64_t n = s.n_rows * s.n_each, c;
    for (c = 0; c < s.n_channels; c++)
        out[1][c] = out[2][c] = 0;
    for (int64_t k = 0; k < s.n_samples * s.n_groups; k++) {
        int64_t sample = k / s.n_groups, g = k % s.n_groups;
        double sum = 0, product = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = element_at(&s, sample, g, i, &c);
            double normal = (x[at] - mean[k]) * inv_std[k];
            sum += dy[at] * scale[c] / (double)n;
            product += dy[at] * scale[c] * normal / (double)n;
            out[1][c] += dy[at] * normal;
            out[2][c] += dy[at];
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t at = element_at(&s, sample, g, i, &c);
            out[0][at] = inv_std[k] * (dy[at] * scale[c] - sum - (x[at] - mean[k]) * inv_std[k] * product);
        }
    }
    return STK_OK;
}

stk_status stk_ref_group_norm_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_forward, out);
}

stk_status stk_ref_group_norm_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad, out);
}

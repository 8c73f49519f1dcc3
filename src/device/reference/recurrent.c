/* lstm, gru and their gradients: step after step, unit after unit, as the formulas of ops/recurrent.h have it. */
#include <math.h>

#include "device/reference/reference.h"

/* Sizes of a call, and where things of sample i at step t are. */
typedef struct walk {
    int64_t n, t, h;
    int n_gates;
    bool reverse;
    const double *mask; /* NULL: all count */
} walk;

static walk open_walk(const stk_op_call *call, const double *const *in, int i_gates, int n_gates, int i_mask)
{
    stk_shape shape = call->in[i_gates].shape;
    walk w = {.n = shape.dim[0], .t = shape.dim[1], .h = shape.dim[2] / n_gates, .n_gates = n_gates};
    w.reverse = call->attrs->recurrent.reverse != 0;
    if (call->attrs->recurrent.has_mask) w.mask = in[i_mask];
    return w;
}

static int64_t step_of(const walk *w, int64_t k)
{
    return w->reverse ? w->t - 1 - k : k;
}

static bool counts(const walk *w, int64_t i, int64_t t)
{
    return !w->mask || w->mask[i * w->t + t] != 0;
}

/* Row k steps into the walk of x [N,T,width]; the state before the first one is `first` [N,width]. */
static const double *row_of(const walk *w, const double *x, const double *first, int64_t width, int64_t i, int64_t k)
{
    return k < 0 ? first + i * width : x + (i * w->t + step_of(w, k)) * width;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Row j of weight times h, and its bias. */
static double from_state(const walk *w, const double *weight, const double *bias, const double *h, int64_t j)
{
    double sum = bias[j];
    for (int64_t u = 0; u < w->h; u++)
        sum += weight[j * w->h + u] * h[u];
    return sum;
}

/* Column u of weight times what all gates had to do. */
static double to_state(const walk *w, const double *weight, const double *dgates, int64_t u)
{
    double sum = 0;
    for (int64_t j = 0; j < w->n_gates * w->h; j++)
        sum += weight[j * w->h + u] * dgates[j];
    return sum;
}

static stk_status run_lstm(const stk_op_call *call, const double *const *in, double *const *out)
{
    walk w = open_walk(call, in, 0, 4, 5);
    int64_t n = w.h;
    for (int64_t i = 0; i < w.n; i++)
        for (int64_t k = 0; k < w.t; k++) {
            int64_t at = i * w.t + step_of(&w, k);
            const double *x = in[0] + at * 4 * n, *h_before = row_of(&w, out[0], in[3], n, i, k - 1);
            const double *c_before = row_of(&w, out[1], in[4], n, i, k - 1);
            double *h = out[0] + at * n, *c = out[1] + at * n, *gates = out[2] + at * 4 * n;
            for (int64_t u = 0; u < n; u++) {
                bool here = counts(&w, i, step_of(&w, k));
                for (int g = 0; g < 4; g++) {
                    double a = x[g * n + u] + from_state(&w, in[1], in[2], h_before, g * n + u);
                    gates[g * n + u] = !here ? 0 : g == 2 ? tanh(a) : sigmoid(a);
                }
                c[u] = here ? gates[n + u] * c_before[u] + gates[u] * gates[2 * n + u] : c_before[u];
                h[u] = here ? gates[3 * n + u] * tanh(c[u]) : h_before[u];
            }
        }
    return STK_OK;
}

static stk_status run_gru(const stk_op_call *call, const double *const *in, double *const *out)
{
    walk w = open_walk(call, in, 0, 3, 4);
    int64_t n = w.h;
    for (int64_t i = 0; i < w.n; i++)
        for (int64_t k = 0; k < w.t; k++) {
            int64_t at = i * w.t + step_of(&w, k);
            const double *x = in[0] + at * 3 * n, *h_before = row_of(&w, out[0], in[3], n, i, k - 1);
            double *h = out[0] + at * n, *gates = out[1] + at * 3 * n, *part = out[2] + at * n;
            for (int64_t u = 0; u < n; u++) {
                double r = sigmoid(x[u] + from_state(&w, in[1], in[2], h_before, u));
                double z = sigmoid(x[n + u] + from_state(&w, in[1], in[2], h_before, n + u));
                double p = from_state(&w, in[1], in[2], h_before, 2 * n + u), new = tanh(x[2 * n + u] + r * p);
                bool here = counts(&w, i, step_of(&w, k));
                gates[u] = here ? r : 0;
                gates[n + u] = here ? z : 0;
                gates[2 * n + u] = here ? new : 0;
                part[u] = here ? p : 0;
                h[u] = here ? new + z *(h_before[u] - new) : h_before[u];
            }
        }
    return STK_OK;
}

static stk_status run_lstm_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    walk w = open_walk(call, in, 2, 4, 5);
    int64_t n = w.h;
    const double *more = call->n_in > 5 + (w.mask != NULL) ? in[5 + (w.mask != NULL)] : NULL;
    for (int64_t i = 0; i < w.n; i++) {
        double *dh = out[1] + i * n, *dc = out[2] + i * n;
        for (int64_t u = 0; u < n; u++)
            dh[u] = dc[u] = 0;
        for (int64_t k = w.t - 1; k >= 0; k--) {
            int64_t at = i * w.t + step_of(&w, k);
            const double *gates = in[2] + at * 4 * n, *c = in[1] + at * n;
            const double *c_before = row_of(&w, in[1], in[4], n, i, k - 1);
            double *dx = out[0] + at * 4 * n;
            bool here = counts(&w, i, step_of(&w, k));
            for (int64_t u = 0; u < n; u++) {
                double gi = gates[u], gf = gates[n + u], gg = gates[2 * n + u], go = gates[3 * n + u];
                double shown = tanh(c[u]);
                dh[u] += in[0][at * n + u];
                if (more) dc[u] += more[at * n + u];
                double d = dc[u] + dh[u] * go * (1 - shown * shown);
                dx[u] = here ? d * gg * gi * (1 - gi) : 0;
                dx[n + u] = here ? d * c_before[u] * gf * (1 - gf) : 0;
                dx[2 * n + u] = here ? d * gi * (1 - gg * gg) : 0;
                dx[3 * n + u] = here ? dh[u] * shown * go * (1 - go) : 0;
                if (here) dc[u] = d * gf;
            }
            for (int64_t u = 0; u < n && here; u++)
                dh[u] = to_state(&w, in[3], dx, u);
        }
    }
    return STK_OK;
}

static stk_status run_gru_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    walk w = open_walk(call, in, 2, 3, 6);
    int64_t n = w.h;
    for (int64_t i = 0; i < w.n; i++) {
        double *dh = out[2] + i * n;
        for (int64_t u = 0; u < n; u++)
            dh[u] = 0;
        for (int64_t k = w.t - 1; k >= 0; k--) {
            int64_t at = i * w.t + step_of(&w, k);
            const double *gates = in[2] + at * 3 * n, *part = in[3] + at * n;
            const double *h_before = row_of(&w, in[1], in[5], n, i, k - 1);
            double *dx = out[0] + at * 3 * n, *dstate = out[1] + at * 3 * n;
            bool here = counts(&w, i, step_of(&w, k));
            for (int64_t u = 0; u < n; u++) {
                double r = gates[u], z = gates[n + u], new = gates[2 * n + u];
                dh[u] += in[0][at * n + u];
                double dn = dh[u] * (1 - z) * (1 - new *new);
                dx[u] = dstate[u] = here ? dn * part[u] * r * (1 - r) : 0;
                dx[n + u] = dstate[n + u] = here ? dh[u] * (h_before[u] - new) * z * (1 - z) : 0;
                dx[2 * n + u] = here ? dn : 0;
                dstate[2 * n + u] = here ? dn * r : 0;
                if (here) dh[u] *= z;
            }
            for (int64_t u = 0; u < n && here; u++)
                dh[u] += to_state(&w, in[4], dstate, u);
        }
    }
    return STK_OK;
}

stk_status stk_ref_lstm_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_lstm, out);
}

stk_status stk_ref_lstm_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_lstm_grad, out);
}

stk_status stk_ref_gru_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_gru, out);
}

stk_status stk_ref_gru_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_gru_grad, out);
}

/* Updates of parameters: SGD with momentum, Adam and AdamW, as PyTorch defines them or as Keras does.
 * Sutskever et al. 2013 (momentum), Kingma & Ba 2015, Loshchilov & Hutter 2019.
 */
#include <math.h>

#include "device/reference/reference.h"

static stk_status run_sgd(const stk_op_call *call, const double *const *in, double *const *out)
{
    const stk_attrs *a = call->attrs;
    bool has_velocity = a->sgd.momentum != 0;
    const double *param = in[0], *velocity = in[1], *grad = in[has_velocity ? 2 : 1];
    double lr = in[has_velocity ? 3 : 2][0], momentum = a->sgd.momentum;
    int64_t n = stk_shape_count(call->in[0].shape);
    for (int64_t i = 0; i < n; i++) {
        double p = param[i], g = grad[i];
        if (a->sgd.like_keras)
            p -= lr * a->sgd.weight_decay * p;
        else
            g += a->sgd.weight_decay * p;
        if (!has_velocity) {
            out[0][i] = p - lr * g;
        } else if (a->sgd.like_keras) {
            double v = momentum * velocity[i] - lr * g;
            out[0][i] = p + (a->sgd.nesterov ? momentum * v - lr * g : v);
            out[1][i] = v;
        } else {
            double v = momentum * velocity[i] + g;
            out[0][i] = p - lr * (a->sgd.nesterov ? g + momentum * v : v);
            out[1][i] = v;
        }
    }
    return STK_OK;
}

static stk_status run_adam(const stk_op_call *call, const double *const *in, double *const *out)
{
    const stk_attrs *a = call->attrs;
    double lr = in[4][0], t = in[5][0] + 1, decay = a->adam.weight_decay;
    double correct_m = 1 - pow(a->adam.beta1, t), correct_v = 1 - pow(a->adam.beta2, t);
    int64_t n = stk_shape_count(call->in[0].shape);
    for (int64_t i = 0; i < n; i++) {
        double param = in[0][i], g = in[3][i];
        if (a->adam.decoupled)
            param -= lr * decay * param;
        else
            g += decay * param;
        double m = a->adam.beta1 * in[1][i] + (1 - a->adam.beta1) * g;
        double v = a->adam.beta2 * in[2][i] + (1 - a->adam.beta2) * g * g;
        if (a->adam.like_keras)
            param -= lr * sqrt(correct_v) / correct_m * m / (sqrt(v) + a->adam.eps);
        else
            param -= lr / correct_m * m / (sqrt(v / correct_v) + a->adam.eps);
        out[0][i] = param;
        out[1][i] = m;
        out[2][i] = v;
    }
    return STK_OK;
}

stk_status stk_ref_sgd_update_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_sgd, out);
}

stk_status stk_ref_adam_update_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_adam, out);
}

/* Optimisers' settings: the defaults of each kind. */
#include "stoker/optim.h"

static double or_default(double value, double standard)
{
    return value == 0 ? standard : value;
}

stk_optimizer stk_optimizer_fill(stk_optimizer_kind kind, stk_optimizer settings)
{
    stk_optimizer o = settings;
    o.kind = kind;
    /* A negative decay stays negative, so that filling twice gives the same. */
    if (kind == STK_OPTIMIZER_SGD) {
        o.lr = or_default(o.lr, 0.01);
        return o;
    }
    o.lr = or_default(o.lr, 0.001);
    o.beta1 = or_default(o.beta1, 0.9);
    o.beta2 = or_default(o.beta2, 0.999);
    o.eps = or_default(o.eps, o.like_keras ? 1e-7 : 1e-8);
    if (kind == STK_OPTIMIZER_ADAMW) o.weight_decay = or_default(o.weight_decay, o.like_keras ? 0.004 : 0.01);
    return o;
}

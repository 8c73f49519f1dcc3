/* Optimisers' settings: the defaults of each kind. */
#include "stoker/train/optim.h"

static double or_default(double value, double default_value)
{
    return value == 0 ? default_value : value;
}

stk_optimizer stk_optimizer_fill(stk_optimizer_kind kind, stk_optimizer settings)
{
    stk_optimizer o = settings;
    o.kind = kind;
    /* A negative decay stays negative, so that filling twice gives the same. */
    switch (kind) {
    case STK_OPTIMIZER_SGD: o.lr = or_default(o.lr, 0.01); return o;
    case STK_OPTIMIZER_RMSPROP:
        o.lr = or_default(o.lr, o.like_keras ? 0.001 : 0.01);
        o.beta2 = or_default(o.beta2, o.like_keras ? 0.9 : 0.99);
        o.eps = or_default(o.eps, o.like_keras ? 1e-7 : 1e-8);
        return o;
    case STK_OPTIMIZER_ADAGRAD:
        o.lr = or_default(o.lr, 0.01);
        o.eps = or_default(o.eps, 1e-10);
        return o;
    case STK_OPTIMIZER_LARS:
        o.lr = or_default(o.lr, 0.1);
        o.momentum = or_default(o.momentum, 0.9);
        o.weight_decay = or_default(o.weight_decay, 1e-4);
        o.trust = or_default(o.trust, 0.001);
        o.eps = or_default(o.eps, 1e-8);
        return o;
    case STK_OPTIMIZER_MUON:
        o.momentum = or_default(o.momentum, 0.95);
        o.weight_decay = or_default(o.weight_decay, 0.1);
        o.eps = or_default(o.eps, 1e-7);
        o.rest_lr = or_default(o.rest_lr, 3e-4);
        break;
    case STK_OPTIMIZER_LAMB:
        o.weight_decay = or_default(o.weight_decay, 0.01);
        o.eps = or_default(o.eps, 1e-6);
        break;
    default: break;
    }
    o.lr = or_default(o.lr, 0.001);
    o.beta1 = or_default(o.beta1, 0.9);
    o.beta2 = or_default(o.beta2, 0.999);
    o.eps = or_default(o.eps, o.like_keras ? 1e-7 : 1e-8);
    if (kind == STK_OPTIMIZER_ADAMW) o.weight_decay = or_default(o.weight_decay, o.like_keras ? 0.004 : 0.01);
    return o;
}

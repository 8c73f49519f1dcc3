/* Adam (Kingma & Ba 2015), as torch.optim's and Keras'. */
#include "optim/optimizer.h"

static const stk_key keys[] = {
    STK_OPTIM_RATE("0.001"),
    STK_OPTIM_BETAS,
    STK_OPTIM_EPS("Added to the root. Default: 1e-8, or 1e-7 like Keras."),
    STK_OPTIM_SHARE("weight_decay", "0", "Added to the gradient, as L2; like Keras: taken from the weights."),
    STK_OPTIM_LIKE,
    STK_OPTIM_END};

void stk_optim_adam(const stk_optim_step *s, bool decoupled)
{
    const stk_optimizer *o = s->settings;
    stk_attrs attrs = stk_attrs_zero();
    attrs.adam.beta1 = o->beta1;
    attrs.adam.beta2 = o->beta2;
    attrs.adam.eps = o->eps;
    attrs.adam.weight_decay = s->weight_decay;
    attrs.adam.decoupled = decoupled;
    attrs.adam.like_keras = o->like_keras;
    stk_value m = stk_optim_state(s->param, "m"), v = stk_optim_state(s->param, "v");
    stk_optim_update(STK_OP_adam_update, &attrs, (stk_value[]){s->param, m, v, s->grad, s->lr, s->step}, 6, 2);
}

static void add(const stk_optim_step *s)
{
    stk_optim_adam(s, s->settings->like_keras);
}

const stk_optimizer_class stk_optimizer_class_adam = {
    .key = STK_OPTIM_KIND("adam", keys, "Kingma & Ba 2015."),
    .defaults = {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
    .keras = {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7, .like_keras = true},
    .counts = true,
    .add = add,
};

/* AdamW: Adam whose decay is taken from the weights (Loshchilov & Hutter 2019). */
#include "optim/optimizer.h"

static const stk_key keys[] = {
    STK_OPTIM_RATE("0.001"),
    STK_OPTIM_BETAS,
    STK_OPTIM_EPS("Added to the root. Default: 1e-8, or 1e-7 like Keras."),
    STK_OPTIM_SHARE("weight_decay", NULL, "Taken from the weights. Default: 0.01, or 0.004 like Keras."),
    STK_OPTIM_LIKE,
    STK_OPTIM_END};

static void add(const stk_optim_step *s)
{
    stk_optim_adam(s, true);
}

const stk_optimizer_class stk_optimizer_class_adamw = {
    .key = STK_OPTIM_KIND("adamw", keys, "Loshchilov & Hutter 2019."),
    .defaults = {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01},
    .keras = {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7, .weight_decay = 0.004, .like_keras = true},
    .counts = true,
    .add = add,
};

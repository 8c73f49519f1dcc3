/* Stochastic gradient descent with momentum, as torch.optim's and Keras'. */
#include "base/error.h"
#include "optim/optimizer.h"

static const stk_key keys[] = {
    STK_OPTIM_RATE("0.01"),
    STK_OPTIM_SHARE("momentum", "0", "0: none."),
    {.name = "nesterov", .type = STK_KEY_BOOL, .default_value = "false", .doc = "Nesterov's momentum."},
    STK_OPTIM_SHARE("weight_decay", "0", "Added to the gradient, as L2; like Keras: taken from the weights."),
    STK_OPTIM_LIKE,
    STK_OPTIM_END};

static stk_status check(const stk_optimizer *o)
{
    if (!o->nesterov || o->momentum > 0) return STK_OK;
    return stk_fail(STK_INVALID, "optimizer: nesterov needs a momentum");
}

static stk_status check_recipe(const stk_yaml_node *settings, const stk_optimizer *o)
{
    if (!o->nesterov || o->momentum > 0) return STK_OK;
    return stk_yaml_fail_key(stk_yaml_get(settings, "nesterov"), "'nesterov' needs a momentum");
}

static void add(const stk_optim_step *s)
{
    const stk_optimizer *o = s->settings;
    stk_attrs attrs = stk_attrs_zero();
    attrs.sgd.momentum = o->momentum;
    attrs.sgd.weight_decay = s->weight_decay;
    attrs.sgd.nesterov = o->nesterov;
    attrs.sgd.like_keras = o->like_keras;
    if (o->momentum == 0) {
        stk_optim_update(STK_OP_sgd_update, &attrs, (stk_value[]){s->param, s->grad, s->lr}, 3, 0);
    } else {
        stk_value velocity = stk_optim_state(s->param, "velocity");
        stk_optim_update(STK_OP_sgd_update, &attrs, (stk_value[]){s->param, velocity, s->grad, s->lr}, 4, 1);
    }
}

const stk_optimizer_class stk_optimizer_class_sgd = {
    .key = STK_OPTIM_KIND("sgd", keys, "Stochastic gradient descent."),
    .defaults = {.lr = 0.01},
    .keras = {.lr = 0.01, .like_keras = true},
    .check = check,
    .check_recipe = check_recipe,
    .add = add,
};

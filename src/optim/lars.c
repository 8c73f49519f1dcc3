/* LARS (You et al. 2017): as LAMB, of SGD. */
#include "optim/optimizer.h"

static const stk_key keys[] = {STK_OPTIM_RATE("0.1"),
                               STK_OPTIM_SHARE("momentum", "0.9", "Of the update."),
                               STK_OPTIM_SHARE("weight_decay", NULL, "Part of the update. Default: 1e-4."),
                               {.name = "trust",
                                .type = STK_KEY_REAL,
                                .default_value = "0.001",
                                .least = 0,
                                .above = true,
                                .doc = "The rate of a layer is multiplied by it and by norm(weights) / norm(update)."},
                               STK_OPTIM_END};

static void add(const stk_optim_step *s)
{
    const stk_optimizer *o = s->settings;
    stk_value update = s->grad, rate = s->lr, velocity = stk_optim_state(s->param, "velocity");
    if (s->weight_decay != 0) {
        stk_value weights = stk_optim_norm(s->param);
        stk_value size = stk_add(stk_optim_norm(s->grad), stk_scale_by(weights, s->weight_decay));
        update = stk_add(update, stk_scale_by(s->param, s->weight_decay));
        rate = stk_mul(rate, stk_optim_ratio(stk_scale_by(weights, o->trust), stk_shift_by(size, o->eps)));
    }
    stk_value fresh = stk_add(stk_scale_by(velocity, o->momentum), stk_mul(update, rate));
    stk_graph_update(s->param.graph, velocity, fresh);
    stk_graph_update(s->param.graph, s->param, stk_sub(s->param, fresh));
}

const stk_optimizer_class stk_optimizer_class_lars = {
    .key = STK_OPTIM_KIND("lars", keys, "You et al. 2017: as LAMB, of SGD."),
    .defaults = {.lr = 0.1, .momentum = 0.9, .eps = 1e-8, .weight_decay = 1e-4, .trust = 0.001},
    .add = add,
};

/* Adagrad (Duchi et al. 2011), as torch.optim's. */
#include "optim/optimizer.h"

static const stk_key keys[] = {STK_OPTIM_RATE("0.01"), STK_OPTIM_EPS("Added to the root. Default: 1e-10."),
                               STK_OPTIM_SHARE("weight_decay", NULL, "Added to the gradient, as L2."), STK_OPTIM_END};

static void add(const stk_optim_step *s)
{
    stk_value g = stk_optim_decayed_grad(s), sum = stk_optim_state(s->param, "sum");
    stk_value all = stk_add(sum, stk_square(g));
    stk_graph_update(s->param.graph, sum, all);
    stk_value change = stk_div(stk_mul(g, s->lr), stk_shift_by(stk_sqrt(all), s->settings->eps));
    stk_graph_update(s->param.graph, s->param, stk_sub(s->param, change));
}

const stk_optimizer_class stk_optimizer_class_adagrad = {
    .key = STK_OPTIM_KIND("adagrad", keys, "Duchi et al. 2011."),
    .defaults = {.lr = 0.01, .eps = 1e-10},
    .add = add,
};

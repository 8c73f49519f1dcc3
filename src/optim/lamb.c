/* LAMB (You et al. 2020, algorithm 2, with bias correction). What goes without weight decay, biases and norms as a
 * rule, has the plain rate, as the paper's own runs do.
 */
#include <math.h>

#include "optim/optimizer.h"

static const stk_key keys[] = {
    STK_OPTIM_RATE("0.001"), STK_OPTIM_BETAS, STK_OPTIM_EPS("Added to the root. Default: 1e-6."),
    STK_OPTIM_SHARE("weight_decay", NULL, "Part of the update. Default: 0.01."), STK_OPTIM_END};

/* 1 - beta^(step + 1), in f64 since it begins near 0. */
static stk_value correction(const stk_optim_step *s, double beta)
{
    stk_value t = stk_shift_by(stk_cast_to(s->step, STK_F64), 1);
    stk_value power = stk_exp(stk_scale_by(t, log(beta)));
    return stk_shift_by(stk_neg(power), 1);
}

static void add(const stk_optim_step *s)
{
    const stk_optimizer *o = s->settings;
    stk_graph *graph = s->param.graph;
    stk_dtype dtype = stk_value_dtype(s->param);
    stk_value m = stk_optim_state(s->param, "m"), v = stk_optim_state(s->param, "v");
    stk_value new_m = stk_add(stk_scale_by(m, o->beta1), stk_scale_by(s->grad, 1 - o->beta1));
    stk_value new_v = stk_add(stk_scale_by(v, o->beta2), stk_scale_by(stk_square(s->grad), 1 - o->beta2));
    stk_value m_factor = stk_cast_to(stk_reciprocal(correction(s, o->beta1)), dtype);
    stk_value v_factor = stk_cast_to(stk_rsqrt(correction(s, o->beta2)), dtype);
    stk_value root = stk_shift_by(stk_mul(stk_sqrt(new_v), v_factor), o->eps);
    stk_value update = stk_div(stk_mul(new_m, m_factor), root), rate = s->lr;
    stk_graph_update(graph, m, new_m);
    stk_graph_update(graph, v, new_v);
    if (s->weight_decay != 0) {
        update = stk_add(update, stk_scale_by(s->param, s->weight_decay));
        rate = stk_mul(rate, stk_optim_ratio(stk_optim_norm(s->param), stk_optim_norm(update)));
    }
    stk_graph_update(graph, s->param, stk_sub(s->param, stk_mul(update, rate)));
}

const stk_optimizer_class stk_optimizer_class_lamb = {
    .key =
        STK_OPTIM_KIND("lamb", keys, "You et al. 2020: for large batches; what `no_decay` names keeps the plain rate."),
    .defaults = {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01},
    .counts = true,
    .add = add,
};

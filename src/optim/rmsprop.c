/* RMSprop (Tieleman & Hinton 2012, lecture 6.5) as torch.optim's and Keras', and Adagrad (Duchi et al. 2011) as
 * torch.optim's.
 */
#include "optim/step.h"

/* The gradient with the decay added, as L2. */
static stk_value decayed_grad(const stk_optim_step *s)
{
    return s->weight_decay == 0 ? s->grad : stk_add(s->grad, stk_scale_by(s->param, s->weight_decay));
}

/* old * share + fresh * (1 - share). */
static stk_value mix(stk_value old, stk_value fresh, double share)
{
    return stk_add(stk_scale_by(old, share), stk_scale_by(fresh, 1 - share));
}

/* param + change, with Keras' decay of the parameter itself. */
static void finish(const stk_optim_step *s, stk_value change, double decay)
{
    stk_value kept = s->param;
    if (decay != 0) kept = stk_sub(kept, stk_mul(kept, stk_scale_by(s->lr, decay)));
    stk_graph_update(s->param.graph, s->param, stk_sub(kept, change));
}

void stk_optim_rmsprop(const stk_optim_step *s)
{
    const stk_optimizer *o = s->settings;
    stk_graph *graph = s->param.graph;
    stk_value g = o->like_keras ? s->grad : decayed_grad(s), square = stk_optim_state(s->param, "square");
    stk_value v = mix(square, stk_square(g), o->beta2), spread = v;
    stk_graph_update(graph, square, v);
    if (o->centered) {
        stk_value state = stk_optim_state(s->param, "mean"), mean = mix(state, g, o->beta2);
        stk_graph_update(graph, state, mean);
        spread = stk_sub(v, stk_square(mean));
    }
    /* Keras has eps inside the root and the rate inside the velocity. */
    stk_value change = o->like_keras ? stk_mul(stk_mul(g, s->lr), stk_rsqrt(stk_shift_by(spread, o->eps)))
                                     : stk_div(g, stk_shift_by(stk_sqrt(spread), o->eps));
    if (o->momentum != 0) {
        stk_value velocity = stk_optim_state(s->param, "velocity");
        change = stk_add(stk_scale_by(velocity, o->momentum), change);
        stk_graph_update(graph, velocity, change);
    }
    finish(s, o->like_keras ? change : stk_mul(change, s->lr), o->like_keras ? s->weight_decay : 0);
}

void stk_optim_adagrad(const stk_optim_step *s)
{
    stk_value g = decayed_grad(s), sum = stk_optim_state(s->param, "sum");
    stk_value all = stk_add(sum, stk_square(g));
    stk_graph_update(s->param.graph, sum, all);
    finish(s, stk_div(stk_mul(g, s->lr), stk_shift_by(stk_sqrt(all), s->settings->eps)), 0);
}

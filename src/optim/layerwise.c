/* LAMB (You et al. 2020, algorithm 2, with bias correction) and LARS (You et al. 2017). Both give each layer a rate by
 * the norm of its weights over that of its update. What goes without weight decay, biases and norms as a rule, has the
 * plain rate, as the papers' own runs do.
 */
#include <math.h>

#include "optim/step.h"

static stk_value norm_of(stk_value x)
{
    stk_value squares = stk_square(x);
    return stk_sqrt(stk_value_shape(squares).rank ? stk_reduce_sum(squares, 0) : squares);
}

/* a / b, or 1 where either is 0. */
static stk_value ratio(stk_value a, stk_value b)
{
    stk_value zero = stk_scale_by(a, 0), one = stk_shift_by(zero, 1);
    stk_value share = stk_select(stk_greater(b, zero), stk_div(a, b), one);
    return stk_select(stk_greater(a, zero), share, one);
}

/* 1 - beta^(step + 1), in f64 since it begins near 0. */
static stk_value correction(const stk_optim_step *s, double beta)
{
    stk_value t = stk_shift_by(stk_cast_to(s->step, STK_F64), 1);
    stk_value power = stk_exp(stk_scale_by(t, log(beta)));
    return stk_shift_by(stk_neg(power), 1);
}

void stk_optim_lamb(const stk_optim_step *s)
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
        rate = stk_mul(rate, ratio(norm_of(s->param), norm_of(update)));
    }
    stk_graph_update(graph, s->param, stk_sub(s->param, stk_mul(update, rate)));
}

void stk_optim_lars(const stk_optim_step *s)
{
    const stk_optimizer *o = s->settings;
    stk_value update = s->grad, rate = s->lr, velocity = stk_optim_state(s->param, "velocity");
    if (s->weight_decay != 0) {
        stk_value weights = norm_of(s->param);
        stk_value size = stk_add(norm_of(s->grad), stk_scale_by(weights, s->weight_decay));
        update = stk_add(update, stk_scale_by(s->param, s->weight_decay));
        rate = stk_mul(rate, ratio(stk_scale_by(weights, o->trust), stk_shift_by(size, o->eps)));
    }
    stk_value fresh = stk_add(stk_scale_by(velocity, o->momentum), stk_mul(update, rate));
    stk_graph_update(s->param.graph, velocity, fresh);
    stk_graph_update(s->param.graph, s->param, stk_sub(s->param, fresh));
}

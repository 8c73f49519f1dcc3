/* RMSprop (Tieleman & Hinton 2012, lecture 6.5), as torch.optim's and Keras'. */
#include "optim/optimizer.h"

static const stk_key keys[] = {
    {.name = "lr",
     .type = STK_KEY_REAL,
     .least = 0,
     .above = true,
     .doc = "The learning rate. Default: 0.01, or 0.001 like Keras."},
    STK_OPTIM_SHARE("beta2", NULL, "Decay of the mean of squares. Default: 0.99, or 0.9 like Keras."),
    STK_OPTIM_SHARE("momentum", "0", "0: none."),
    {.name = "centered",
     .type = STK_KEY_BOOL,
     .default_value = "false",
     .doc = "By the variance, not the mean of squares."},
    STK_OPTIM_EPS("Added to the root; like Keras: inside it. Default: 1e-8, or 1e-7 like Keras."),
    STK_OPTIM_SHARE("weight_decay", NULL, "Added to the gradient, as L2; like Keras: taken from the weights."),
    STK_OPTIM_LIKE,
    STK_OPTIM_END};

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

static void add(const stk_optim_step *s)
{
    const stk_optimizer *o = s->settings;
    stk_graph *graph = s->param.graph;
    stk_value g = o->like_keras ? s->grad : stk_optim_decayed_grad(s), square = stk_optim_state(s->param, "square");
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

const stk_optimizer_class stk_optimizer_class_rmsprop = {
    .key = STK_OPTIM_KIND("rmsprop", keys, "Tieleman & Hinton 2012."),
    .defaults = {.lr = 0.01, .beta2 = 0.99, .eps = 1e-8},
    .keras = {.lr = 0.001, .beta2 = 0.9, .eps = 1e-7, .like_keras = true},
    .add = add,
};

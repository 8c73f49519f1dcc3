/* One parameter's update, as nodes of the training graph. Fusion makes one kernel of each element-wise update, which
 * sweeps once over the parameter and its state; SGD and Adam have ops of their own.
 */
#ifndef STK_OPTIM_STEP_H
#define STK_OPTIM_STEP_H

#include "graph/graph.h"
#include "stoker/train/optim.h"

typedef struct stk_optim_step {
    stk_value param, grad, loss;
    stk_value lr;   /* scalar of the parameter's dtype (f32 for 16-bit floats) */
    stk_value step; /* i64 [], the steps done before; no value for a class that does not count */
    double weight_decay;
    const stk_optimizer *settings;
} stk_optim_step;

/* The variable "<parameter>.<part>", zeros of the parameter's type. */
stk_value stk_optim_state(stk_value param, const char *part);
/* Adds the node and lets its outputs become the variables in[0 .. n_state]. */
void stk_optim_update(stk_op op, const stk_attrs *attrs, const stk_value *in, int n_in, int n_state);
/* The gradient with the decay added, as L2. */
stk_value stk_optim_decayed_grad(const stk_optim_step *s);
/* The root of the sum of squares. */
stk_value stk_optim_norm(stk_value x);
/* a / b, or 1 where either is 0. */
stk_value stk_optim_ratio(stk_value a, stk_value b);

/* In adam.c; decoupled: the decay is taken from the weights. */
void stk_optim_adam(const stk_optim_step *s, bool decoupled);
/* In muon.c: whether it is for that parameter, a hidden layer's matrix or convolution. */
bool stk_optim_muon_takes(const stk_graph *graph, stk_value loss, stk_value param);

#endif

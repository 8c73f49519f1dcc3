/* One parameter's update, as nodes of the training graph: the optimisers that need no op of their own. Fusion makes one
 * kernel of each element-wise update, which sweeps once over the parameter and its state.
 */
#ifndef STK_OPTIM_STEP_H
#define STK_OPTIM_STEP_H

#include "graph/graph.h"
#include "stoker/train/optim.h"

typedef struct stk_optim_step {
    stk_value param, grad;
    stk_value lr;   /* scalar of the parameter's dtype (f32 for 16-bit floats) */
    stk_value step; /* i64 [], the steps done before; no value for those that need none */
    double weight_decay;
    const stk_optimizer *settings;
} stk_optim_step;

/* The variable "<parameter>.<part>", zeros of the parameter's type. */
stk_value stk_optim_state(stk_value param, const char *part);

/* In rmsprop.c: also Adagrad, Duchi et al. 2011. */
void stk_optim_rmsprop(const stk_optim_step *s);
void stk_optim_adagrad(const stk_optim_step *s);
/* In layerwise.c: rates by the norms of a layer's weights and gradient. */
void stk_optim_lamb(const stk_optim_step *s);
void stk_optim_lars(const stk_optim_step *s);
/* In muon.c. */
void stk_optim_muon(const stk_optim_step *s);
/* Whether Muon is for that parameter: a hidden layer's matrix, or convolution. */
bool stk_optim_muon_takes(const stk_graph *graph, stk_value loss, stk_value param);

#endif

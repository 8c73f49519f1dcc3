/* The optimiser's part of a training graph: gradients, clipping, state and updates. Rates over time are in schedule.c.
 *
 *   loss -> grad (one for each parameter) -> clip -> sgd_update, adam_update or step.h -> parameter and state
 */
#ifndef STK_OPTIM_UPDATE_H
#define STK_OPTIM_UPDATE_H

#include "graph/graph.h"
#include "stoker/train/optim.h"

typedef struct stk_optim_options {
    stk_optimizer optimizer; /* filled by stk_optimizer_fill */
    double clip_norm;        /* of all gradients together; 0: none */
    bool grad_norm;       /* the output "grad_norm", of all gradients before clipping; clip_norm makes it in any case */
    bool keep_gradients;  /* outputs "grad/PARAMETER", before clipping: they stay until the step's end */
    const char *no_decay; /* see no_decay.h; borrowed until the call returns */
    stk_value grad_factor;         /* a scalar that all gradients are multiplied by before clipping; graph NULL: none */
    const stk_param_group *groups; /* [n_groups], borrowed until the call returns */
    int n_groups;
    stk_average average;     /* decay 0: none; else see average.h */
    stk_lookahead lookahead; /* every 0: none; else see lookahead.h */
    int64_t n_steps;         /* of the whole run, for a lookahead */
    int64_t epoch_steps;     /* of an epoch, for groups with an end */
} stk_optim_options;

/* Adds an update of every trainable variable that loss, a float scalar, depends on; others stay as they are. The state
 * lies in variables "<parameter>.velocity", ".m", ".v" and so on. The inputs "lr" f32 [] and, where the optimiser
 * counts, "step" i64 [] (the steps done before, 0 at first) are found or made. An error is kept in the graph and
 * returned. */
stk_status stk_optim_build(stk_graph *graph, stk_value loss, const stk_optim_options *options);

#endif

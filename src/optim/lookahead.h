/* Slow weights behind the trained ones: see stk_lookahead in optim.h. */
#ifndef STK_OPTIM_LOOKAHEAD_H
#define STK_OPTIM_LOOKAHEAD_H

#include "graph/graph.h"
#include "stoker/train/optim.h"

stk_status stk_lookahead_check(const stk_lookahead *settings);

/* After the updates have been added, of which the first n_statistics roots are the forward pass's own: of each weight
 * and running statistic "w" the variable "w.slow" holds the slow one, and "lookahead.count" i64 [] the steps that were
 * done. */
stk_status stk_lookahead_build(stk_graph *graph, const stk_lookahead *settings, int n_statistics, int64_t n_steps);

#endif

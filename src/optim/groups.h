/* Groups of parameters: frozen ones, others with a rate and a decay of their own. See stk_param_group in optim.h. */
#ifndef STK_OPTIM_GROUPS_H
#define STK_OPTIM_GROUPS_H

#include "graph/graph.h"
#include "stoker/train/optim.h"

/* The first group that a parameter of that name belongs to; NULL: none. */
const stk_param_group *stk_group_of(const stk_param_group *groups, int n, const char *name);
/* An error where a group has numbers that make no sense, or a pattern that matches no trainable variable of the graph.
 */
stk_status stk_groups_check(const stk_graph *graph, const stk_param_group *groups, int n);
/* Marks the batch norms whose scale is frozen: pass_inference lets them go by their running statistics. */
void stk_groups_freeze_norms(stk_graph *graph, const stk_param_group *groups, int n);

#endif

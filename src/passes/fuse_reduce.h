/* Which reductions a group may end in. For pass_fuse. */
#ifndef STK_PASSES_FUSE_REDUCE_H
#define STK_PASSES_FUSE_REDUCE_H

#include "graph/graph.h"

/* True for a node of sum, mean, maximum or minimum that is no slower next to the making of what it reduces. is_stored:
 * something else reads that, too. */
bool stk_fuse_may_reduce(const stk_graph *graph, const stk_node *node, bool is_stored);

#endif

/* For pass_simplify: a sum of gradients of slices that make up the whole is a concat.
 *
 *   slice_grad(a) + slice_grad(b) + slice_grad(c)      three tensors that are zero but for a part, and two sums
 *   concat(a, b, c)                                    where the slices lie one after the other along one axis
 */
#ifndef STK_PASSES_JOIN_PARTS_H
#define STK_PASSES_JOIN_PARTS_H

#include "graph/graph.h"

/* Where node is such a sum, it becomes the concat. Without memory it stays as it is. */
void stk_join_parts(stk_graph *graph, stk_node *node);

#endif

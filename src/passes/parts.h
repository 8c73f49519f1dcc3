/* The three parts of a step in micro-batches: begin, once; the body, once for each micro-batch; end, once.
 *
 *   begin   what the body needs and what is the same for all micro-batches: casts of parameters, constants
 *   body    what depends on the slices of the batch, up to the sums (accumulate)
 *   end     what depends on sums: clipping, updates
 *
 * Late nodes stand in the body, and run with its last micro-batch only: a gradient's sum over micro-batches is whole
 * where that micro-batch has been added, and its sum over ranks begins there, while the backward pass goes on.
 */
#ifndef STK_PASSES_PARTS_H
#define STK_PASSES_PARTS_H

#include "graph/query.h"

typedef struct stk_parts {
    int32_t n_begin, n_body; /* nodes; the rest is the end. Both 0: not in micro-batches */
    bool *late;              /* [nodes]; NULL: none is */
} stk_parts;

/* What is different for each part of a batch, a micro-batch or a rank's share, and what depends on gradients. */
typedef struct stk_part_marks {
    bool *varies, *has_grad; /* by value */
} stk_part_marks;
/* *out is freed by stk_part_marks_free, also after a failure. */
stk_status stk_part_marks_make(const stk_graph *graph, stk_part_marks *out);
void stk_part_marks_free(stk_part_marks *marks);
/* Has all nodes before n_nodes, and all roots, read `to` instead of `from`. */
void stk_part_redirect(stk_graph *graph, int32_t n_nodes, int32_t from, int32_t to);

/* True for an input that is bound to another slice in each micro-batch: it has a dimension, or is `row`. */
bool stk_input_is_sliced(const stk_graph *graph, int32_t i_node);
/* Puts the nodes in the order of the parts. *out is freed by stk_parts_free, also after a failure. */
stk_status stk_parts_arrange(stk_graph *graph, stk_parts *out);
void stk_parts_free(stk_parts *parts);

#endif

/* Questions about a graph that several layers ask: what a value depends on, and scalar inputs by name. */
#ifndef STK_GRAPH_QUERY_H
#define STK_GRAPH_QUERY_H

#include "graph/graph.h"

/* needed[n_nodes] becomes true for each node that x depends on, x's own included. */
void stk_graph_mark_needed(stk_value x, bool *needed);

/* The scalar input of that name, made where there is none. Keeps an error where another type has the name. */
stk_value stk_graph_scalar_input(stk_graph *graph, const char *name, stk_dtype dtype);

/* The stream of random numbers of the next node that draws, so that no two have the same mask. */
int64_t stk_graph_next_stream(const stk_graph *graph);

/* Inputs that a program in micro-batches sets itself: the slice's first row in the batch, i64 []; and f32 [micro], 1
 * for rows that no slice before held, else 0 (the last slice may go back, so that all are of one size). */
#define STK_MICRO_ROW   "micro.row"
#define STK_MICRO_FRESH "micro.fresh"

/* What node i_node costs, however many inputs it has. Zeros when out of memory. */
stk_cost stk_graph_cost(const stk_graph *graph, int32_t i_node);

#endif

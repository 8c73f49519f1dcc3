/* Questions about a graph that several layers ask: what a value depends on, and scalar inputs by name. */
#ifndef STK_GRAPH_QUERY_H
#define STK_GRAPH_QUERY_H

#include "graph/graph.h"

/* needed[n_nodes] becomes true for each node that x depends on, x's own included. */
void stk_graph_mark_needed(stk_value x, bool *needed);

/* The scalar input of that name, made where there is none. Keeps an error where another type has the name. */
stk_value stk_graph_scalar_input(stk_graph *graph, const char *name, stk_dtype dtype);

#endif

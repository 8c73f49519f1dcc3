/* To which layer each node belongs, for plans and marks that people read and write.
 *
 * A node belongs to the layer whose parameter it reads ("layer1.0.conv1" of "layer1.0.conv1.weight"), or what is made
 * of parameters alone, as a weight in 16 bits; one that makes the gradient of a parameter to that one's layer; others
 * to the layer of their first input that has one, in the backward pass of the forward pass. Nodes before the first
 * layer belong to none.
 */
#ifndef STK_GRAPH_LAYERS_H
#define STK_GRAPH_LAYERS_H

#include "graph/graph.h"

typedef struct stk_layer_name {
    const char *text; /* the first n bytes of it; borrowed from the graph; NULL: no layer */
    int n;
} stk_layer_name;

/* Fills layer[n_nodes]. */
stk_status stk_graph_find_layers(const stk_graph *graph, stk_layer_name *layer);
/* True for "layer1" and "layer1.0", given "layer1": whole parts of names only. */
bool stk_layer_is_within(stk_layer_name layer, const char *outer, size_t n_outer);

#endif

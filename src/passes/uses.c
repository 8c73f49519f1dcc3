#include <stdlib.h>

#include "passes/passes.h"

int32_t *stk_pass_count_uses(const stk_graph *graph)
{
    int32_t *n = calloc((size_t)graph->n_values + 1, sizeof(*n));
    for (int i = 0; n && i < graph->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++)
            n[graph->node[i].in[j]]++;
    for (int i = 0; n && i < graph->n_roots; i++)
        n[graph->root[i].value]++;
    return n;
}

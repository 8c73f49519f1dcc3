#include <stdlib.h>

#include "passes/passes.h"

int32_t *stk_pass_identity(const stk_graph *graph, int32_t n_more)
{
    int32_t *replace = malloc(((size_t)graph->n_values + (size_t)n_more + 1) * sizeof(*replace));
    for (int32_t i = 0; replace && i < graph->n_values + n_more; i++)
        replace[i] = i;
    return replace;
}

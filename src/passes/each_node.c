#include <stdlib.h>

#include "base/error.h"
#include "passes/passes.h"

stk_status stk_pass_each_node(stk_graph *graph, stk_pass_visit visit)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    int32_t *replace = stk_pass_identity(graph, 0), *n_uses = stk_pass_count_uses(graph);
    if (!replace || !n_uses) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    for (int32_t i = 0; i < graph->n_nodes; i++)
        STK_TRY(visit(graph, &graph->node[i], n_uses, replace));
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(replace);
    free(n_uses);
    return status;
}

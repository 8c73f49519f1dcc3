/* Lets a batch norm do the ReLU that alone uses its result: one sweep over the activations less, forward and backward.
 */
#include <stdlib.h>

#include "base/error.h"
#include "passes/passes.h"

stk_status pass_absorb(stk_graph *graph, const stk_pass_options *options)
{
    (void)options;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    int32_t *replace = stk_pass_identity(graph, 0), *n_uses = stk_pass_count_uses(graph);
    if (!replace || !n_uses) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    for (int i = 0; i < graph->n_nodes; i++) {
        stk_node *relu = &graph->node[i];
        if (relu->op != STK_OP_unary || relu->attrs.element.kind != STK_UNARY_relu) continue;
        stk_node *norm = &graph->node[graph->value[relu->in[0]].node];
        if (norm->op != STK_OP_batch_norm || norm->first_out != relu->in[0] || n_uses[norm->first_out] != 1) continue;
        norm->attrs.batch_norm.relu = 1;
        replace[relu->first_out] = norm->first_out;
    }
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(replace);
    free(n_uses);
    return status;
}

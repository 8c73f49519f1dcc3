/* Lets a batch norm do the ReLU that alone uses its result: one sweep over the activations less, forward and backward.
 */
#include "passes/passes.h"

static stk_status visit(stk_graph *graph, const stk_node *relu, const int32_t *n_uses, int32_t *replace)
{
    if (relu->op != STK_OP_unary || relu->attrs.element.kind != STK_UNARY_relu) return STK_OK;
    stk_node *norm = &graph->node[graph->value[relu->in[0]].node];
    if (norm->op != STK_OP_batch_norm || norm->first_out != relu->in[0] || n_uses[norm->first_out] != 1) return STK_OK;
    norm->attrs.batch_norm.relu = 1;
    replace[relu->first_out] = norm->first_out;
    return STK_OK;
}

stk_status pass_fuse_norm_relu(stk_graph *graph, const stk_pass_options *options)
{
    const stk_device_caps *caps = stk_pass_caps(options);
    if (!caps->norm_relu || !stk_device_caps_has(caps, STK_OP_batch_norm)) return stk_graph_status(graph);
    return stk_pass_each_node(graph, visit);
}

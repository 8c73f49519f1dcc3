/* On devices that do not compute in f64: numbers that the graph makes f64 of narrower ones, as counters, shares and
 * sums of metrics, are f32. f64 that comes from outside, an input or a variable, is meant: the graph stays as it is,
 * and the device refuses it by name.
 */
#include "passes/passes.h"

static bool is_given(const stk_node *node)
{
    return node->op == STK_OP_input || node->op == STK_OP_variable;
}

stk_status pass_narrow(stk_graph *graph, const stk_pass_options *options)
{
    if (stk_pass_caps(options)->f64) return STK_OK;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->value[i].desc.dtype == STK_F64 && is_given(&graph->node[graph->value[i].node])) return STK_OK;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].attrs.dtype == STK_F64) graph->node[i].attrs.dtype = STK_F32;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->value[i].desc.dtype == STK_F64) graph->value[i].desc.dtype = STK_F32;
    return STK_OK;
}

#include "graph/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void stk_graph_mark_needed(stk_value x, bool *needed)
{
    const stk_graph *graph = x.graph;
    memset(needed, 0, (size_t)graph->n_nodes * sizeof(*needed));
    if (x.id < 0 || x.id >= graph->n_values) return;
    needed[graph->value[x.id].node] = true;
    /* Each node follows its inputs, so that one sweep from the end sees users first. */
    for (int i = graph->value[x.id].node; i >= 0; i--) {
        if (!needed[i]) continue;
        for (int j = 0; j < graph->node[i].n_in; j++)
            needed[graph->value[graph->node[i].in[j]].node] = true;
    }
}

stk_value stk_graph_scalar_input(stk_graph *graph, const char *name, stk_dtype dtype)
{
    if (!graph || graph->status != STK_OK) return stk_value_none(graph);
    stk_shape scalar = {.rank = 0};
    stk_value x = stk_graph_find(graph, STK_OP_input, name);
    if (x.id < 0) return stk_graph_input(graph, name, dtype, scalar);
    stk_tensor_desc have = graph->value[x.id].desc;
    if (have.dtype == dtype && stk_shape_equal(have.shape, scalar)) return x;
    char is[STK_SHAPE_TEXT_BYTES], must[STK_SHAPE_TEXT_BYTES];
    stk_graph_keep_error(graph, stk_fail(STK_INVALID, "input '%s' is %s, and must be %s", name, stk_desc_text(have, is),
                                         stk_desc_text(stk_desc_make(dtype, scalar), must)));
    return stk_value_none(graph);
}

stk_cost stk_graph_cost(const stk_graph *graph, int32_t i_node)
{
    const stk_node *node = &graph->node[i_node];
    stk_tensor_desc few[32], *desc = few;
    size_t n = (size_t)node->n_in + (size_t)node->n_out;
    if (n > sizeof(few) / sizeof(*few) && !(desc = malloc(n * sizeof(*desc)))) return (stk_cost){0};
    stk_op_call call = stk_graph_call(graph, i_node, desc, desc + node->n_in);
    stk_cost cost = stk_op_cost(&call);
    if (desc != few) free(desc);
    return cost;
}

int64_t stk_graph_next_stream(const stk_graph *graph)
{
    int64_t n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        n += node->op == STK_OP_dropout || (node->op == STK_OP_attention && node->attrs.attention.rate > 0);
    }
    return n;
}

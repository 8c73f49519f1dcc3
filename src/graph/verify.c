/* Checks of a graph's form, for tests and after passes. */
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"

static stk_status verify_node(const stk_graph *graph, int32_t i)
{
    const stk_node *node = &graph->node[i];
    const stk_op_rule *rule = stk_op_get_rule(node->op);
    if ((unsigned)node->op >= STK_N_OPS) return stk_fail(STK_INTERNAL, "node %d has no op", (int)i);
    for (int j = 0; j < node->n_in; j++)
        if (node->in[j] < 0 || node->in[j] >= node->first_out)
            return stk_fail(STK_INTERNAL, "node %d (%s): input %d comes later", (int)i, rule->name, j);
    for (int j = 0; j < node->n_out; j++) {
        int32_t id = node->first_out + j;
        if (id >= graph->n_values || graph->value[id].node != i)
            return stk_fail(STK_INTERNAL, "node %d (%s): output %d belongs to another node", (int)i, rule->name, j);
        STK_RETURN_IF_ERROR(stk_desc_check(graph->value[id].desc));
    }
    if (node->n_in > STK_MOST_INPUTS || node->op == STK_OP_fused || node->op == STK_OP_grad) return STK_OK;
    stk_tensor_desc in[STK_MOST_INPUTS], out[STK_MOST_OUTPUTS], again[STK_MOST_OUTPUTS];
    stk_op_call call = stk_graph_call(graph, i, in, out);
    call.out = again;
    STK_RETURN_IF_ERROR(rule->infer(&call));
    for (int j = 0; j < node->n_out; j++)
        if (again[j].dtype != out[j].dtype || !stk_shape_equal(again[j].shape, out[j].shape)) {
            char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
            return stk_fail(STK_INTERNAL, "node %d (%s): output %d is %s, its rule says %s", (int)i, rule->name, j,
                            stk_desc_text(out[j], a), stk_desc_text(again[j], b));
        }
    return STK_OK;
}

stk_status stk_graph_verify(const stk_graph *graph)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    for (int i = 0; i < graph->n_nodes; i++)
        STK_RETURN_IF_ERROR(verify_node(graph, i));
    for (int i = 0; i < graph->n_roots; i++) {
        const stk_graph_root *root = &graph->root[i];
        if (root->value < 0 || root->value >= graph->n_values) return stk_fail(STK_INTERNAL, "root %d is no value", i);
        for (int j = 0; j < i; j++)
            if (root->variable >= 0 && graph->root[j].variable == root->variable)
                return stk_fail(STK_INTERNAL, "roots %d and %d update one variable", j, i);
    }
    return STK_OK;
}

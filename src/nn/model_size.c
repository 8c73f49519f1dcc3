/* How large a model is: its parameters, and the arithmetic of one sample. */
#include <stdlib.h>

#include "graph/query.h"
#include "stoker/nn/nn.h"

static void count_parameters(const stk_graph *graph, stk_model_size *size)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_variable) continue;
        bool updated = false;
        for (int j = 0; j < graph->n_roots; j++)
            updated = updated || graph->root[j].variable == node->first_out;
        int64_t n = stk_shape_count(graph->value[node->first_out].desc.shape);
        if (node->attrs.leaf.trainable) size->n_trainable += n;
        if (node->attrs.leaf.trainable || !updated) size->n_parameters += n;
    }
}

/* The flops of all nodes that id depends on; all nodes where id is -1. 0 when out of memory. */
static double count_flops(stk_graph *graph, int32_t id)
{
    double flops = 0;
    int32_t most = 1;
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].n_in + graph->node[i].n_out > most) most = graph->node[i].n_in + graph->node[i].n_out;
    bool *needed = calloc((size_t)graph->n_nodes + 1, sizeof(*needed));
    stk_tensor_desc *desc = calloc((size_t)most, sizeof(*desc));
    if (needed && desc) {
        if (id >= 0) stk_graph_mark_needed(stk_value_of(graph, id), needed);
        for (int i = 0; i < graph->n_nodes; i++) {
            const stk_node *node = &graph->node[i];
            if ((id >= 0 && !needed[i]) || stk_op_get_rule(node->op)->kind == STK_KIND_LEAF) continue;
            stk_op_call call = stk_graph_call(graph, i, desc, desc + node->n_in);
            flops += stk_op_cost(&call).flops;
        }
    }
    free(desc);
    free(needed);
    return flops;
}

stk_model_size stk_model_get_size(const stk_model *model)
{
    if (!model) return (stk_model_size){0};
    stk_model_size size = {0};
    if (stk_model_status(model) != STK_OK) return size;
    stk_value loss = stk_model_get_loss(model), output = stk_model_get_output(model);
    count_parameters(loss.graph, &size);
    /* Ids stay the same in a clone. */
    stk_graph *one = stk_graph_clone(loss.graph, 1);
    if (one && stk_graph_status(one) == STK_OK)
        size.forward_flops = count_flops(one, output.id >= 0 ? output.id : loss.id);
    stk_graph_free(one);
    return size;
}

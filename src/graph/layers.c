#include "graph/layers.h"

#include <string.h>

static stk_layer_name without_last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return (stk_layer_name){name, dot ? (int)(dot - name) : (int)strlen(name)};
}

void stk_graph_find_layers(const stk_graph *graph, stk_layer_name *layer)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        layer[i] = (stk_layer_name){NULL, 0};
        if (node->op == STK_OP_variable && node->name) layer[i] = without_last_part(node->name);
        for (int j = 0; j < node->n_in; j++) {
            int32_t maker = graph->value[node->in[j]].node;
            bool is_parameter = graph->node[maker].op == STK_OP_variable;
            if (!layer[maker].text || (layer[i].text && !is_parameter)) continue;
            layer[i] = layer[maker];
            if (is_parameter) break;
        }
    }
}

bool stk_layer_is_within(stk_layer_name layer, const char *outer, size_t n_outer)
{
    if (!layer.text || (size_t)layer.n < n_outer || strncmp(layer.text, outer, n_outer)) return false;
    return (size_t)layer.n == n_outer || layer.text[n_outer] == '.';
}

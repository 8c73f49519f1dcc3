/* See run/observe_graph.h. */
#include "run/observe_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/layers.h"
#include "train/trainer_state.h"

enum { NAME_BYTES = 160 };

/* "layer1/0/conv1/conv2d_17": the layer's dots are levels. */
static void make_name(const stk_node *node, int32_t i, stk_layer_name layer, char out[NAME_BYTES])
{
    int n = 0;
    if (node->name && (node->op == STK_OP_input || node->op == STK_OP_variable))
        n = snprintf(out, NAME_BYTES, "%.*s", NAME_BYTES - 1, node->name);
    else
        n = snprintf(out, NAME_BYTES, "%.*s%s%s_%" PRId32, layer.text ? layer.n < 100 ? layer.n : 100 : 0,
                     layer.text ? layer.text : "", layer.text ? "/" : "", stk_op_name(node->op), i);
    for (int k = 0; k < n && k < NAME_BYTES - 1; k++)
        if (out[k] == '.') out[k] = '/';
}

static void fill_node(const stk_graph *graph, int32_t i, const char *name, int *input, stk_event_node *out)
{
    const stk_node *node = &graph->node[i];
    const stk_shape *shape = &graph->value[node->first_out].desc.shape;
    for (int j = 0; j < node->n_in; j++)
        input[j] = graph->value[node->in[j]].node;
    *out = (stk_event_node){.name = name,
                            .op = stk_op_name(node->op),
                            .input = input,
                            .n_inputs = node->n_in,
                            .shape = shape->dim,
                            .rank = shape->rank};
}

stk_status stk_observe_write_graph(stk_event_file *file, stk_trainer *trainer)
{
    const stk_graph *graph = stk_model_graph(trainer->model);
    size_t n = graph ? (size_t)graph->n_nodes : 0, n_inputs = 0, at = 0;
    stk_status status;
    for (size_t i = 0; i < n; i++)
        n_inputs += (size_t)graph->node[i].n_in;
    stk_event_node *node = calloc(n + 1, sizeof(*node));
    stk_layer_name *layer = calloc(n + 1, sizeof(*layer));
    char(*name)[NAME_BYTES] = calloc(n + 1, sizeof(*name));
    int *input = calloc(n_inputs + 1, sizeof(*input));
    if (!node || !layer || !name || !input) STK_TRY(stk_fail_memory((n + 1) * NAME_BYTES));
    if (n) STK_TRY(stk_graph_find_layers(graph, layer));
    for (size_t i = 0; i < n; i++) {
        make_name(&graph->node[i], (int32_t)i, layer[i], name[i]);
        fill_node(graph, (int32_t)i, name[i], input + at, &node[i]);
        at += (size_t)graph->node[i].n_in;
    }
    status = stk_event_write_graph(file, node, (int)n);
done:
    free(node);
    free(layer);
    free(name);
    free(input);
    return status;
}

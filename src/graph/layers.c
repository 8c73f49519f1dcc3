#include "graph/layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static stk_layer_name without_last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return (stk_layer_name){name, dot ? (int)(dot - name) : (int)strlen(name)};
}

static bool is_variable(const stk_graph *graph, const char *name, size_t n)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op == STK_OP_variable && node->name && strlen(node->name) == n && !strncmp(node->name, name, n))
            return true;
    }
    return false;
}

/* "conv" of "conv.weight", and of "conv.weight.momentum", which is that variable's state. */
static stk_layer_name layer_of_variable(const stk_graph *graph, const char *name)
{
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
        if (is_variable(graph, name, (size_t)(dot - name))) {
            size_t n = (size_t)(dot - name) - 1;
            while (n > 0 && name[n] != '.')
                n--;
            return (stk_layer_name){name, n > 0 ? (int)n : (int)(dot - name)};
        }
    return without_last_part(name);
}

/* --- by what a node reads --- */

typedef struct layer_search {
    const stk_graph *graph;
    stk_layer_name *layer;
    bool *is_parameter; /* [n_nodes]: made of variables alone, as weights in 16 bits are */
    bool *is_sure;      /* [n_nodes]: it reads a parameter */
} layer_search;

static void look_at_inputs(layer_search *s, int32_t i)
{
    const stk_graph *graph = s->graph;
    const stk_node *node = &graph->node[i];
    bool all_parameters = node->n_in > 0, has_forward = false;
    for (int j = 0; j < node->n_in; j++) {
        int32_t maker = graph->value[node->in[j]].node;
        all_parameters = all_parameters && (s->is_parameter[maker] || graph->node[maker].op == STK_OP_constant);
        if (!s->layer[maker].text || s->is_sure[i]) continue;
        /* Of a gradient's inputs what the forward pass made tells more than the gradient that comes in, which is of the
         * layer above. */
        bool is_forward = node->backward && !graph->node[maker].backward;
        if (!s->is_parameter[maker] && s->layer[i].text && (has_forward || !is_forward)) continue;
        s->layer[i] = s->layer[maker];
        s->is_sure[i] = s->is_parameter[maker];
        has_forward = is_forward;
    }
    s->is_parameter[i] = all_parameters && s->layer[i].text && !node->backward;
}

/* --- by what a node is for --- */

/* What changes numbers one by one or moves them, so that its inputs are for what its output is for. */
static bool passes_on(stk_op op)
{
    switch (op) {
    case STK_OP_cast:
    case STK_OP_accumulate:
    case STK_OP_carry:
    case STK_OP_reshape:
    case STK_OP_transpose:
    case STK_OP_select:
    case STK_OP_fused:
    case STK_OP_binary:
    case STK_OP_unary: return true;
    default: return false;
    }
}

/* Gradients of parameters need not read these: from the update of a variable back to what makes its gradient, which is
 * as large as the variable. wanted: [n_nodes]. */
static void look_at_updates(layer_search *s, int32_t *wanted)
{
    const stk_graph *graph = s->graph;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        wanted[i] = -1;
    for (int r = 0; r < graph->n_roots; r++)
        if (graph->root[r].variable >= 0) wanted[graph->value[graph->root[r].value].node] = graph->root[r].variable;
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--) {
        const stk_node *node = &graph->node[i];
        if (wanted[i] < 0) continue;
        const stk_value_info *variable = &graph->value[wanted[i]];
        if (!s->is_sure[i] && s->layer[variable->node].text) s->layer[i] = s->layer[variable->node];
        if (node->backward && !passes_on(node->op)) continue;
        for (int j = 0; j < node->n_in; j++) {
            const stk_value_info *in = &graph->value[node->in[j]];
            /* Behind a gradient that is finished, as clipped, none of the forward pass's numbers are read. */
            bool is_gradient = graph->node[in->node].backward || (!node->backward && graph->node[in->node].n_in > 0);
            if (is_gradient && wanted[in->node] < 0 &&
                stk_shape_count(in->desc.shape) == stk_shape_count(variable->desc.shape))
                wanted[in->node] = wanted[i];
        }
    }
}

stk_status stk_graph_find_layers(const stk_graph *graph, stk_layer_name *layer)
{
    size_t n = (size_t)graph->n_nodes + 1;
    bool *marks = calloc(2 * n, sizeof(*marks));
    int32_t *wanted = malloc(n * sizeof(*wanted));
    layer_search s = {graph, layer, marks, marks ? marks + n : NULL};
    if (marks && wanted) {
        for (int32_t i = 0; i < graph->n_nodes; i++) {
            const stk_node *node = &graph->node[i];
            layer[i] = (stk_layer_name){NULL, 0};
            if (node->op != STK_OP_variable || !node->name) {
                look_at_inputs(&s, i);
                continue;
            }
            layer[i] = layer_of_variable(graph, node->name);
            s.is_parameter[i] = true;
        }
        look_at_updates(&s, wanted);
        /* What reads these gradients, as their norm, follows. */
        for (int32_t i = 0; i < graph->n_nodes; i++) {
            if (s.is_sure[i] || wanted[i] >= 0 || graph->node[i].n_in == 0) continue;
            layer[i] = (stk_layer_name){NULL, 0};
            look_at_inputs(&s, i);
        }
    }
    stk_status status = marks && wanted ? STK_OK : stk_fail_memory(n * sizeof(*wanted));
    free(marks);
    free(wanted);
    return status;
}

bool stk_layer_is_within(stk_layer_name layer, const char *outer, size_t n_outer)
{
    if (!layer.text || (size_t)layer.n < n_outer || strncmp(layer.text, outer, n_outer)) return false;
    return (size_t)layer.n == n_outer || layer.text[n_outer] == '.';
}

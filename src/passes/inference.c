/* The graph for evaluation: batch norm by its running statistics, dropout gone, no updates of variables. In training
 * the same for frozen batch norms, and nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/passes.h"

/* y = x * s + (bias - mean * s) with s = scale / sqrt(var + eps); the [C] part is computed once a run, all in f32. */
static stk_value normalise(stk_graph *graph, const stk_node *node)
{
    stk_value x = stk_value_of(graph, node->in[0]), scale = stk_value_of(graph, node->in[1]);
    stk_value bias = stk_value_of(graph, node->in[2]), mean = stk_value_of(graph, node->in[3]);
    stk_value var = stk_value_of(graph, node->in[4]);
    stk_value s = stk_mul(scale, stk_rsqrt(stk_shift_by(var, node->attrs.batch_norm.eps)));
    stk_value t = stk_sub(bias, stk_mul(mean, s));
    stk_value y = stk_add(stk_mul(stk_cast_to(x, stk_value_dtype(s)), s), t);
    return stk_cast_to(node->attrs.batch_norm.relu ? stk_relu(y) : y, stk_value_dtype(x));
}

/* Attention without dropout, and without the two inputs that go with it. */
static stk_value keep_weights(stk_graph *graph, const stk_node *node)
{
    enum { MOST = 6 };
    stk_attrs attrs = node->attrs;
    stk_value in[MOST];
    if (attrs.attention.rate == 0) return stk_value_of(graph, node->first_out);
    attrs.attention.rate = 0;
    attrs.attention.stream = 0;
    for (int i = 0; i < node->n_in - 2; i++)
        in[i] = stk_value_of(graph, node->in[i]);
    return stk_graph_add(graph, STK_OP_attention, &attrs, in, node->n_in - 2);
}

static bool is_frozen(const stk_graph *graph, int32_t node)
{
    return graph->node[node].op == STK_OP_batch_norm && graph->node[node].attrs.batch_norm.frozen;
}

/* All of them, or those that frozen batch norms make. */
static void drop_updates(stk_graph *graph, bool all)
{
    int32_t n = 0;
    for (int i = 0; i < graph->n_roots; i++) {
        bool is_update = graph->root[i].variable >= 0;
        if (is_update && (all || is_frozen(graph, graph->value[graph->root[i].value].node))) continue;
        graph->root[n++] = graph->root[i];
    }
    graph->n_roots = n;
}

static bool has_frozen(const stk_graph *graph)
{
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (is_frozen(graph, i)) return true;
    return false;
}

stk_status pass_inference(stk_graph *graph, const stk_pass_options *options)
{
    bool all = !options || !options->training;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (!all && !has_frozen(graph)) return STK_OK;
    stk_status status = STK_OK;
    int32_t n_nodes = graph->n_nodes, n_values = graph->n_values;
    int32_t *changed = stk_pass_identity(graph, 0), *replace = NULL;
    if (!changed) STK_TRY(stk_fail_memory((size_t)n_values * sizeof(*changed)));
    drop_updates(graph, all);
    for (int32_t i = 0; i < n_nodes; i++) {
        stk_node node = graph->node[i]; /* A copy: the array moves. */
        if (!all && !is_frozen(graph, i)) continue;
        if (node.op == STK_OP_dropout) changed[node.first_out] = node.in[0];
        if (node.op == STK_OP_attention) changed[node.first_out] = keep_weights(graph, &node).id;
        if (node.op == STK_OP_batch_norm) changed[node.first_out] = normalise(graph, &node).id;
        STK_TRY(stk_graph_status(graph));
    }
    replace = stk_pass_identity(graph, 0);
    if (!replace) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    memcpy(replace, changed, (size_t)n_values * sizeof(*replace));
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(changed);
    free(replace);
    return status;
}

/* Ops that the device has no kernel of are made of others, by what their rules say (stk_op_rule.decompose):
 *
 *   softmax(x)                       becomes   e / sum(e)  with  e = exp(x - max(x))
 *   linear_cross_entropy(x, w, l)    becomes   cross_entropy(matmul(x, w), l), which goes on in the next round
 *
 * until only primitives are left and what the device has. Where there is no composition the op stays, and the device
 * refuses it by name. What a backward node is made of stays apart from what the forward one was made of: merged,
 * weights of attention would live from one to the other. On a device that has all ops nothing changes.
 */
#include <stdlib.h>

#include "base/error.h"
#include "passes/passes.h"

typedef struct decomposer {
    stk_graph *graph;
    const stk_device_caps *caps;
    int32_t *changed; /* by value that was there before the round: what stands for it */
    int32_t *age;     /* by node, new ones too: of the node that they are made for */
    int32_t n_ages;
} decomposer;

static bool is_lacking(const decomposer *d, stk_op op)
{
    return !stk_device_caps_has(d->caps, op) && stk_op_get_rule(op)->decompose;
}

static bool any_lacking(const decomposer *d)
{
    for (int32_t i = 0; i < d->graph->n_nodes; i++)
        if (is_lacking(d, d->graph->node[i].op)) return true;
    return false;
}

static stk_status check_made(const stk_graph *graph, const stk_node *node, int i, stk_value made)
{
    char have[STK_SHAPE_TEXT_BYTES], want[STK_SHAPE_TEXT_BYTES];
    stk_tensor_desc is = graph->value[made.id].desc, must = graph->value[node->first_out + i].desc;
    if (is.dtype == must.dtype && stk_shape_equal(is.shape, must.shape)) return STK_OK;
    return stk_fail(STK_INTERNAL, "output %d of '%s' %s was made as %s", i, stk_op_name(node->op),
                    stk_desc_text(must, want), stk_desc_text(is, have));
}

/* New nodes belong where the old one was. */
static stk_status note_new(decomposer *d, const stk_node *node, int32_t i_node)
{
    stk_graph *graph = d->graph;
    int32_t *more = realloc(d->age, ((size_t)graph->n_nodes + 1) * sizeof(*more));
    if (!more) return stk_fail_memory((size_t)graph->n_nodes * sizeof(*more));
    d->age = more;
    for (; d->n_ages < graph->n_nodes; d->n_ages++) {
        graph->node[d->n_ages].backward = node->backward;
        graph->node[d->n_ages].barrier = node->backward || node->barrier;
        d->age[d->n_ages] = i_node;
    }
    return STK_OK;
}

static stk_status decompose_node(decomposer *d, int32_t i_node)
{
    stk_graph *graph = d->graph;
    stk_node node = graph->node[i_node]; /* A copy: the array moves while rules add nodes. */
    stk_status status = STK_OK;
    int n_all = node.n_in + 2 * node.n_out;
    stk_value *in = malloc(((size_t)n_all + 1) * sizeof(*in)), *out = in + node.n_in, *made = out + node.n_out;
    if (!in) return stk_fail_memory((size_t)n_all * sizeof(*in));
    for (int i = 0; i < node.n_in; i++)
        in[i] = stk_value_of(graph, node.in[i]);
    for (int i = 0; i < node.n_out; i++) {
        out[i] = stk_value_of(graph, node.first_out + i);
        made[i] = stk_value_none(graph);
    }
    stk_decompose_call call = {graph, &node.attrs, node.n_in, node.n_out, in, out, made};
    stk_op_get_rule(node.op)->decompose(&call);
    STK_TRY(stk_graph_status(graph));
    for (int i = 0; i < node.n_out && made[0].id >= 0; i++) {
        STK_TRY(check_made(graph, &node, i, made[i]));
        d->changed[node.first_out + i] = made[i].id;
    }
    STK_TRY(note_new(d, &node, i_node));
done:
    free(in);
    return status;
}

/* Once over the graph; *any: something has changed. */
static stk_status decompose_all(decomposer *d, bool *any)
{
    stk_graph *graph = d->graph;
    stk_status status = STK_OK;
    int32_t n_nodes = graph->n_nodes, n_values = graph->n_values, *replace = NULL;
    *any = false;
    d->changed = stk_pass_identity(graph, 0);
    d->age = malloc(((size_t)n_nodes + 1) * sizeof(*d->age));
    if (!d->changed || !d->age) STK_TRY(stk_fail_memory((size_t)n_values * sizeof(*d->changed)));
    for (d->n_ages = 0; d->n_ages < n_nodes; d->n_ages++)
        d->age[d->n_ages] = d->n_ages;
    for (int32_t i = 0; i < n_nodes; i++)
        if (is_lacking(d, graph->node[i].op)) STK_TRY(decompose_node(d, i));
    if (!(replace = stk_pass_identity(graph, 0))) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    for (int32_t v = 0; v < n_values; v++) {
        replace[v] = d->changed[v];
        *any |= d->changed[v] != v;
    }
    STK_TRY(stk_graph_rewrite_aged(graph, replace, d->age));
done:
    free(replace);
    free(d->changed);
    free(d->age);
    return status;
}

stk_status pass_decompose(stk_graph *graph, const stk_pass_options *options)
{
    decomposer d = {.graph = graph, .caps = stk_pass_caps(options)};
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (!any_lacking(&d)) return STK_OK;
    for (bool any = true; any;)
        STK_RETURN_IF_ERROR(decompose_all(&d, &any));
    return pass_simplify(graph, options);
}

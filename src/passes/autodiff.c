/* Reverse-mode differentiation on the graph: replaces each grad(y, x) by nodes that compute it.
 *
 * For each y, from its node backwards, every node on a path from some x to y hands the gradients of its outputs to its
 * op's rule, which adds nodes for the gradients of its inputs; where several meet they are added up.
 * A y that depends on a gradient itself waits until that one is nodes, so that gradients of gradients are exact.
 * Griewank & Walther, "Evaluating derivatives", 2nd edition, chapter 3.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/passes.h"

typedef struct differ {
    stk_graph *graph;
    int32_t n_values; /* before any gradient was added */
    int32_t y;
    bool *depends; /* by value: on some x of this y */
    int32_t *grad; /* by value: its gradient's id, -1: none yet */
} differ;

/* Marks every value up to y that depends on some x asked for. */
static void mark_dependent(differ *d)
{
    stk_graph *graph = d->graph;
    int32_t last = graph->value[d->y].node;
    memset(d->depends, 0, (size_t)d->n_values);
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_grad && graph->node[i].in[0] == d->y) d->depends[graph->node[i].in[1]] = true;
    for (int32_t i = 0; i <= last; i++) {
        const stk_node *node = &graph->node[i];
        if (stk_op_get_rule(node->op)->stops_gradient || node->op == STK_OP_grad) continue;
        bool any = false;
        for (int j = 0; j < node->n_in; j++)
            any |= d->depends[node->in[j]];
        for (int j = 0; any && j < node->n_out; j++)
            d->depends[node->first_out + j] = true;
    }
}

static stk_status add_gradient(differ *d, int32_t value, stk_value gradient)
{
    stk_graph *graph = d->graph;
    if (gradient.id < 0) return stk_graph_status(graph);
    stk_tensor_desc want = graph->value[value].desc, have = graph->value[gradient.id].desc;
    if (want.dtype != have.dtype || !stk_shape_equal(want.shape, have.shape)) {
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        return stk_fail(STK_INTERNAL, "the gradient of a value %s came out as %s", stk_desc_text(want, a),
                        stk_desc_text(have, b));
    }
    if (d->grad[value] >= 0) gradient = stk_add(stk_value_of(graph, d->grad[value]), gradient);
    d->grad[value] = gradient.id;
    return stk_graph_status(graph);
}

enum { MOST = 64 };

/* Gradients are multiplied as what they are of was. */
static void hand_on_tf32(stk_graph *graph, int32_t first, const stk_node *from)
{
    for (int32_t i = first; from->attrs.tf32 && i < graph->n_nodes; i++)
        if (stk_op_takes_tf32(graph->node[i].op)) graph->node[i].attrs.tf32 = 1;
}

static stk_status differentiate_node(differ *d, int32_t i_node)
{
    stk_graph *graph = d->graph;
    stk_node node = graph->node[i_node]; /* A copy: the array moves while rules add nodes. */
    const stk_op_rule *rule = stk_op_get_rule(node.op);
    stk_value in[MOST], out[MOST], grad_out[MOST], grad_in[MOST];
    bool need[MOST], any_out = false, any_in = false;
    if (node.n_in > MOST || node.n_out > MOST)
        return stk_fail(STK_UNSUPPORTED, "%s with more than %d inputs has no gradient", rule->name, MOST);
    for (int j = 0; j < node.n_out; j++) {
        out[j] = stk_value_of(graph, node.first_out + j);
        grad_out[j] = stk_value_of(graph, d->grad[node.first_out + j]);
        any_out |= grad_out[j].id >= 0;
    }
    for (int j = 0; j < node.n_in; j++) {
        in[j] = stk_value_of(graph, node.in[j]);
        grad_in[j] = stk_value_none(graph);
        need[j] = d->depends[node.in[j]] && stk_dtype_is_float(graph->value[node.in[j]].desc.dtype);
        any_in |= need[j];
    }
    if (!any_out || !any_in || rule->stops_gradient) return STK_OK;
    if (!rule->grad) return stk_fail(STK_UNSUPPORTED, "%s has no gradient", rule->name);
    stk_grad_call call = {graph, &node.attrs, node.n_in, node.n_out, in, out, grad_out, need, grad_in};
    const int32_t n_before = graph->n_nodes;
    STK_RETURN_IF_ERROR(rule->grad(&call));
    hand_on_tf32(graph, n_before, &node);
    for (int j = 0; j < node.n_in; j++)
        if (need[j]) STK_RETURN_IF_ERROR(add_gradient(d, node.in[j], grad_in[j]));
    return stk_graph_status(graph);
}

/* All gradients of one y; fills replace for its grad nodes. */
static stk_status differentiate(differ *d, int32_t n_nodes, int32_t *replace)
{
    stk_graph *graph = d->graph;
    stk_tensor_desc y = graph->value[d->y].desc;
    mark_dependent(d);
    for (int32_t i = 0; i < d->n_values; i++)
        d->grad[i] = -1;
    d->grad[d->y] = stk_graph_constant(graph, y.dtype, y.shape, 1).id;
    for (int32_t i = graph->value[d->y].node; i >= 0; i--)
        STK_RETURN_IF_ERROR(differentiate_node(d, i));
    for (int32_t i = 0; i < n_nodes; i++) {
        stk_node node = graph->node[i];
        if (node.op != STK_OP_grad || node.in[0] != d->y) continue;
        stk_tensor_desc x = graph->value[node.in[1]].desc;
        int32_t id = d->grad[node.in[1]];
        if (id < 0) id = stk_graph_constant(graph, x.dtype, x.shape, 0).id; /* y does not depend on x. */
        STK_RETURN_IF_ERROR(stk_graph_status(graph));
        replace[node.first_out] = id;
    }
    return STK_OK;
}

/* Marks every value that depends on a gradient. Whether one of those is to be differentiated itself. */
static bool mark_open(const stk_graph *graph, bool *open)
{
    bool nested = false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        bool any = node->op == STK_OP_grad;
        nested |= any && open[node->in[0]];
        for (int j = 0; j < node->n_in && !any; j++)
            any = open[node->in[j]];
        for (int j = 0; j < node->n_out; j++)
            open[node->first_out + j] = any;
    }
    return nested;
}

/* All gradients of values that depend on no gradient; *more: others are left. */
static stk_status replace_gradients(stk_graph *graph, bool *more)
{
    stk_status status = STK_OK;
    int32_t n_nodes = graph->n_nodes;
    differ d = {.graph = graph, .n_values = graph->n_values};
    int32_t *replace_old = stk_pass_identity(graph, 0), *replace = NULL;
    bool *open = calloc((size_t)d.n_values + 1, sizeof(*open));
    d.depends = calloc((size_t)d.n_values + 1, sizeof(*d.depends));
    d.grad = malloc(((size_t)d.n_values + 1) * sizeof(*d.grad));
    *more = false;
    if (!replace_old || !open || !d.depends || !d.grad) STK_TRY(stk_fail_memory((size_t)d.n_values * sizeof(*d.grad)));
    *more = mark_open(graph, open);
    for (int32_t i = 0; i < n_nodes; i++) {
        if (graph->node[i].op != STK_OP_grad || open[graph->node[i].in[0]] ||
            replace_old[graph->node[i].first_out] != graph->node[i].first_out)
            continue;
        d.y = graph->node[i].in[0];
        STK_TRY(differentiate(&d, n_nodes, replace_old));
    }
    for (int32_t i = n_nodes; i < graph->n_nodes; i++)
        graph->node[i].backward = true;
    replace = stk_pass_identity(graph, 0);
    if (!replace) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    memcpy(replace, replace_old, (size_t)d.n_values * sizeof(*replace));
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(replace_old);
    free(replace);
    free(open);
    free(d.depends);
    free(d.grad);
    return status;
}

stk_status pass_autodiff(stk_graph *graph, const stk_pass_options *options)
{
    (void)options;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    for (bool more = true; more;)
        STK_RETURN_IF_ERROR(replace_gradients(graph, &more));
    return STK_OK;
}

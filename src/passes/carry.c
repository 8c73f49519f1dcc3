/* Gradients of a vocabulary's weight are added to their sum over micro-batches where it lies. As large as they are, one
 * of a single micro-batch would take as much memory as the sum, and a sweep over both.
 *
 *   before:  dx, dw = linear_cross_entropy_grad(x, w, labels, dloss)             sum = accumulate(dw, row)
 *   after:   dx, dw = linear_cross_entropy_grad(x, w, labels, dloss, carry(row)) sum = accumulate(dw, row) in_place
 *
 * A tied embedding's scatter_add between the two adds in place, too. plan.h sees to it that all is one memory. Only for
 * devices that have sums in place.
 */
#include <stdlib.h>

#include "base/error.h"
#include "passes/passes.h"

enum { DX, DWEIGHT, N_IN = 4, N_OUT = 3 };

typedef struct carrier {
    stk_graph *graph;
    int32_t *n_uses; /* by value */
    int32_t *replace;
    int32_t *age; /* by node: what is made takes the place of what it replaces */
} carrier;

/* The node whose weight's gradient is summed by `sum`, or -1. */
static int32_t find_maker(const carrier *c, const stk_node *sum)
{
    const stk_graph *graph = c->graph;
    int32_t value = sum->in[0];
    if (c->n_uses[value] != 1) return -1;
    const stk_node *node = &graph->node[graph->value[value].node];
    if (node->op == STK_OP_scatter_add && node->n_in == 3) {
        value = node->in[2];
        if (c->n_uses[value] != 1) return -1;
        node = &graph->node[graph->value[value].node];
    }
    bool fits =
        node->op == STK_OP_linear_cross_entropy_grad && node->n_in == N_IN && value == node->first_out + DWEIGHT;
    return fits ? graph->value[value].node : -1;
}

static stk_status carry(carrier *c, int32_t i_sum, int32_t i_maker)
{
    stk_graph *graph = c->graph;
    stk_node maker = graph->node[i_maker];
    stk_value in[N_IN + 1];
    stk_attrs attrs = stk_attrs_zero();
    stk_tensor_desc desc = graph->value[maker.first_out + DWEIGHT].desc;
    attrs.dtype = desc.dtype;
    attrs.shape = desc.shape;
    for (int j = 0; j < N_IN; j++)
        in[j] = stk_value_of(graph, maker.in[j]);
    graph->node[i_sum].attrs.accumulate.in_place = 1;
    in[N_IN] = stk_value_of(graph, graph->node[i_sum].in[1]);
    in[N_IN] = stk_graph_add(graph, STK_OP_carry, &attrs, &in[N_IN], 1);
    stk_value made = stk_graph_add(graph, maker.op, &maker.attrs, in, N_IN + 1);
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    for (int32_t i = graph->n_nodes - 2; i < graph->n_nodes; i++) {
        graph->node[i].backward = graph->node[i].barrier = true;
        c->age[i] = i_maker;
    }
    for (int j = 0; j < N_OUT; j++)
        c->replace[maker.first_out + j] = made.id + j;
    return STK_OK;
}

stk_status pass_carry(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    const stk_device_caps *caps = stk_pass_caps(options);
    if (!options || options->n_micro < 2 || options->strict_rows || !caps->sums_in_place ||
        !stk_device_caps_has(caps, STK_OP_carry) || !stk_device_caps_has(caps, STK_OP_linear_cross_entropy_grad))
        return STK_OK;
    stk_status status = STK_OK;
    int32_t n_nodes = graph->n_nodes;
    carrier c = {.graph = graph};
    c.n_uses = stk_pass_count_uses(graph);
    c.replace = stk_pass_identity(graph, (N_OUT + 1) * n_nodes);
    c.age = malloc(((size_t)n_nodes * 3 + 1) * sizeof(*c.age));
    if (!c.n_uses || !c.replace || !c.age) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*c.n_uses)));
    for (int32_t i = 0; i < n_nodes; i++)
        c.age[i] = i;
    for (int32_t i = 0; i < n_nodes; i++) {
        if (graph->node[i].op != STK_OP_accumulate) continue;
        int32_t maker = find_maker(&c, &graph->node[i]);
        if (maker >= 0) STK_TRY(carry(&c, i, maker));
    }
    STK_TRY(stk_graph_rewrite_aged(graph, c.replace, c.age));
done:
    free(c.n_uses);
    free(c.replace);
    free(c.age);
    return status;
}

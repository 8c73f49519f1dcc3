/* Accumulate: a batch goes through the step in micro-batches, and what they give is added up.
 *
 *   before:  grad(loss, w) -> clip, update          loss -> output
 *   after:   grad(loss, w) -> accumulate -> clip, update
 *            loss -> accumulate -> output           sample -> sample + row -> dropout
 *
 * Inputs with a batch dimension become slices; `row` is the first row of the slice in the batch, which makes dropout
 * draw the masks of the whole batch. Losses must be divided by the weight of the whole batch where they are made: sums
 * over micro-batches are then the means over the batch. Where that weight is known at the end alone, the graph may hold
 * accumulate nodes of its own, and multiply gradients by what it makes of them. Every output that depends on the slices
 * becomes a sum.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/query.h"
#include "passes/parts.h"
#include "passes/passes.h"

typedef struct accumulator {
    stk_graph *graph;
    int32_t n_nodes; /* before anything is added */
    stk_value row;
    bool *varies;   /* by value: differs between micro-batches */
    bool *has_grad; /* by value: depends on a gradient, so that it exists once for all micro-batches */
} accumulator;

static void mark_values(accumulator *a)
{
    const stk_graph *graph = a->graph;
    for (int32_t i = 0; i < a->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        bool varies = stk_input_is_sliced(graph, i), has_grad = node->op == STK_OP_grad;
        for (int j = 0; j < node->n_in; j++) {
            varies |= a->varies[node->in[j]];
            has_grad |= a->has_grad[node->in[j]];
        }
        if (node->op == STK_OP_accumulate) varies = false; /* A sum that the graph asks for itself. */
        for (int j = 0; j < node->n_out; j++) {
            a->varies[node->first_out + j] = varies;
            a->has_grad[node->first_out + j] = has_grad;
        }
    }
}

static void redirect(accumulator *a, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < a->n_nodes; i++)
        for (int j = 0; j < a->graph->node[i].n_in; j++)
            if (a->graph->node[i].in[j] == from) a->graph->node[i].in[j] = to;
    for (int i = 0; i < a->graph->n_roots; i++)
        if (a->graph->root[i].value == from) a->graph->root[i].value = to;
}

static int32_t add_sum(accumulator *a, int32_t value)
{
    stk_value in[2] = {stk_value_of(a->graph, value), a->row};
    stk_attrs attrs = stk_attrs_zero();
    return stk_graph_add(a->graph, STK_OP_accumulate, &attrs, in, 2).id;
}

static stk_status add_sums(accumulator *a)
{
    stk_graph *graph = a->graph;
    for (int32_t i = 0; i < a->n_nodes; i++) {
        int32_t gradient = graph->node[i].first_out;
        if (graph->node[i].op != STK_OP_grad) continue;
        int32_t sum = add_sum(a, gradient);
        STK_RETURN_IF_ERROR(stk_graph_status(graph));
        redirect(a, gradient, sum);
    }
    for (int i = 0; i < graph->n_roots; i++) {
        int32_t value = graph->root[i].value;
        if (graph->root[i].variable >= 0 || value >= graph->n_values || graph->value[value].node >= a->n_nodes ||
            !a->varies[value] || a->has_grad[value])
            continue;
        graph->root[i].value = add_sum(a, value);
        STK_RETURN_IF_ERROR(stk_graph_status(graph));
    }
    return STK_OK;
}

stk_status pass_accumulate(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    accumulator a = {.graph = graph, .n_nodes = graph->n_nodes};
    int32_t *identity = NULL;
    if (!options || options->n_micro < 2) return STK_OK;
    a.varies = calloc((size_t)graph->n_values + 1, sizeof(*a.varies));
    a.has_grad = calloc((size_t)graph->n_values + 1, sizeof(*a.has_grad));
    if (!a.varies || !a.has_grad) STK_TRY(stk_fail_memory((size_t)graph->n_values));
    mark_values(&a);
    a.row = stk_graph_scalar_input(graph, STK_MICRO_ROW, STK_I64);
    stk_value sample = stk_graph_find(graph, STK_OP_input, "sample");
    if (sample.id >= 0) redirect(&a, sample.id, stk_add(sample, a.row).id);
    STK_TRY(stk_graph_status(graph));
    STK_TRY(add_sums(&a));
    if (!(identity = stk_pass_identity(graph, 0))) STK_TRY(stk_fail_memory((size_t)graph->n_values));
    STK_TRY(stk_graph_rewrite(graph, identity));
done:
    free(a.varies);
    free(a.has_grad);
    free(identity);
    return status;
}

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
 * becomes a sum. Where ranks share the batch, the same sums are marks for the pass replicate, also if there is one
 * micro-batch.
 *
 * Strict: the sums are binary trees, of which sums over ranks are the topmost levels, so that their bits do not tell
 * how many ranks there are. Batch norm's running statistics are then the means of what each micro-batch makes of those
 * before the step, and not a chain from one micro-batch to the next.
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
    stk_attrs attrs; /* of sums */
    stk_part_marks is;
} accumulator;

static int32_t add_sum(accumulator *a, int32_t value)
{
    stk_value in[2] = {stk_value_of(a->graph, value), a->row};
    return stk_graph_add(a->graph, STK_OP_accumulate, &a->attrs, in, 2).id;
}

static stk_status add_sums(accumulator *a)
{
    stk_graph *graph = a->graph;
    for (int32_t i = 0; i < a->n_nodes; i++) {
        int32_t gradient = graph->node[i].first_out;
        if (graph->node[i].op != STK_OP_grad) continue;
        int32_t sum = add_sum(a, gradient);
        STK_RETURN_IF_ERROR(stk_graph_status(graph));
        stk_part_redirect(graph, a->n_nodes, gradient, sum);
    }
    for (int i = 0; i < graph->n_roots; i++) {
        int32_t value = graph->root[i].value;
        if (graph->root[i].variable >= 0 || value >= graph->n_values || graph->value[value].node >= a->n_nodes ||
            !a->is.varies[value] || a->is.has_grad[value])
            continue;
        graph->root[i].value = add_sum(a, value);
        STK_RETURN_IF_ERROR(stk_graph_status(graph));
    }
    return STK_OK;
}

/* Outputs 3 and 4 of a batch norm that is trained. */
static stk_status average_statistics(accumulator *a, int64_t n_parts)
{
    for (int32_t i = 0; i < a->n_nodes; i++) {
        stk_node node = a->graph->node[i]; /* A copy: the array moves. */
        for (int o = 3; node.op == STK_OP_batch_norm && o < node.n_out; o++) {
            int32_t sum = add_sum(a, node.first_out + o);
            stk_value mean = stk_scale_by(stk_value_of(a->graph, sum), 1 / (double)n_parts);
            STK_RETURN_IF_ERROR(stk_graph_status(a->graph));
            stk_part_redirect(a->graph, a->n_nodes, node.first_out + o, mean.id);
        }
    }
    return STK_OK;
}

stk_status pass_accumulate(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    accumulator a = {.graph = graph, .n_nodes = graph->n_nodes};
    int32_t *identity = NULL;
    if (!options || (options->n_micro < 2 && options->n_ranks < 2)) return STK_OK;
    int64_t n_micro = options->n_micro > 1 ? options->n_micro : 1,
            n_ranks = options->n_ranks > 1 ? options->n_ranks : 1;
    a.attrs = options->strict_rows ? stk_accumulate_tree(n_micro, options->strict_rows) : stk_attrs_zero();
    STK_TRY(stk_part_marks_make(graph, &a.is));
    a.row = stk_graph_scalar_input(graph, STK_MICRO_ROW, STK_I64);
    stk_value sample = stk_graph_find(graph, STK_OP_input, "sample");
    if (sample.id >= 0 && options->n_micro > 1)
        stk_part_redirect(graph, a.n_nodes, sample.id, stk_add(sample, a.row).id);
    STK_TRY(stk_graph_status(graph));
    STK_TRY(add_sums(&a));
    if (options->strict_rows) STK_TRY(average_statistics(&a, n_micro * n_ranks));
    if (!(identity = stk_pass_identity(graph, 0))) STK_TRY(stk_fail_memory((size_t)graph->n_values));
    STK_TRY(stk_graph_rewrite(graph, identity));
done:
    stk_part_marks_free(&a.is);
    free(identity);
    return status;
}

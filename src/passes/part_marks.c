/* What depends on the part of the batch that is worked on: for the passes accumulate and replicate. */
#include <stdlib.h>

#include "base/error.h"
#include "passes/parts.h"

/* A sum is the same for all parts. */
static bool is_sum(stk_op op)
{
    return op == STK_OP_accumulate || op == STK_OP_rank_sum;
}

stk_status stk_part_marks_make(const stk_graph *graph, stk_part_marks *out)
{
    size_t n = (size_t)graph->n_values + 1;
    out->varies = calloc(n, sizeof(*out->varies));
    out->has_grad = calloc(n, sizeof(*out->has_grad));
    if (!out->varies || !out->has_grad) return stk_fail_memory(n);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        bool varies = stk_input_is_sliced(graph, i), has_grad = node->op == STK_OP_grad;
        for (int j = 0; j < node->n_in; j++) {
            varies |= out->varies[node->in[j]];
            has_grad |= out->has_grad[node->in[j]];
        }
        for (int j = 0; j < node->n_out; j++) {
            out->varies[node->first_out + j] = varies && !is_sum(node->op);
            out->has_grad[node->first_out + j] = has_grad;
        }
    }
    return STK_OK;
}

void stk_part_marks_free(stk_part_marks *marks)
{
    free(marks->varies);
    free(marks->has_grad);
    *marks = (stk_part_marks){NULL, NULL};
}

void stk_part_redirect(stk_graph *graph, int32_t n_nodes, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++)
            if (graph->node[i].in[j] == from) graph->node[i].in[j] = to;
    for (int i = 0; i < graph->n_roots; i++)
        if (graph->root[i].value == from) graph->root[i].value = to;
}

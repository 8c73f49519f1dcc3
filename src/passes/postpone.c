/* What can wait goes to the end. Nothing but the order changes.
 *
 *   updates of small parameters   stand next to each other: on a device that joins neighbours a launch does many of
 *                                 them. Large ones fill a device by themselves, and stay where their gradients come,
 *                                 whose memory is free again behind them.
 *   sums over ranks of results    losses, metrics and statistics, which the backward pass does not wait for: ranks
 *                                 wait for each other once for all of them.
 */
#include <stdlib.h>

#include "base/error.h"
#include "passes/passes.h"

/* Elements up to which a launch costs about as much as its update. */
enum { MOST_SMALL = 1 << 18 };

static bool is_small_update(const stk_graph *graph, const stk_node *node)
{
    if (node->op != STK_OP_sgd_update && node->op != STK_OP_adam_update) return false;
    return stk_shape_count(graph->value[node->first_out].desc.shape) <= MOST_SMALL;
}

/* Marks what depends on the backward pass, and what some of that depends on. */
static void mark_backward(const stk_graph *graph, bool *behind, bool *before)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        behind[i] = node->backward;
        for (int j = 0; j < node->n_in; j++)
            behind[i] |= behind[graph->value[node->in[j]].node];
    }
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--)
        for (int j = 0; j < graph->node[i].n_in; j++)
            before[graph->value[graph->node[i].in[j]].node] |= behind[i] || before[i];
}

/* What reads an updated parameter, as an average does, comes behind all of the updates; what reads a late sum behind
 * all of these. */
static void choose(const stk_graph *graph, const stk_device_caps *caps, const bool *behind, const bool *before,
                   int32_t *age)
{
    enum { SOON, UPDATE, BEHIND, LAST };
    const int32_t n = graph->n_nodes;
    for (int32_t i = 0; i < n; i++) {
        const stk_node *node = &graph->node[i];
        int when = caps->joins_updates && is_small_update(graph, node) ? UPDATE : SOON;
        if (node->op == STK_OP_rank_sum && !behind[i] && !before[i]) when = LAST;
        for (int j = 0; j < node->n_in; j++) {
            int32_t source = age[graph->value[node->in[j]].node];
            if (source >= LAST * n)
                when = LAST;
            else if (source >= UPDATE * n && when != LAST)
                when = BEHIND;
        }
        age[i] = when * n + i;
    }
}

stk_status pass_postpone(stk_graph *graph, const stk_pass_options *options)
{
    const stk_device_caps *caps = stk_pass_caps(options);
    size_t n = (size_t)graph->n_nodes + 1;
    if (!caps->joins_updates && (!options || options->n_ranks < 2)) return STK_OK;
    int32_t *replace = stk_pass_identity(graph, 0), *age = calloc(n, sizeof(*age));
    bool *behind = calloc(2 * n, sizeof(*behind));
    stk_status status = replace && age && behind ? STK_OK : stk_fail_memory(n * sizeof(*age));
    if (status == STK_OK) {
        mark_backward(graph, behind, behind + n);
        choose(graph, caps, behind, behind + n, age);
        status = stk_graph_rewrite_aged(graph, replace, age);
    }
    free(behind);
    free(replace);
    free(age);
    return status;
}

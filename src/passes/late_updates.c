/* Updates of small parameters go to the end, where they stand next to each other: on a device that joins neighbours a
 * launch then does many of them. Large ones fill a device by themselves, and stay where their gradients come, whose
 * memory is free again behind them. Nothing but the order changes.
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

/* What reads an updated parameter, as an average does, comes behind all of the updates. */
stk_status pass_late_updates(stk_graph *graph, const stk_pass_options *options)
{
    enum { SOON, UPDATE, BEHIND };
    const int32_t n = graph->n_nodes;
    if (!stk_pass_caps(options)->joins_updates) return STK_OK;
    int32_t *replace = stk_pass_identity(graph, 0), *age = calloc((size_t)n + 1, sizeof(*age));
    stk_status status = replace && age ? STK_OK : stk_fail_memory((size_t)n * sizeof(*age));
    for (int32_t i = 0; status == STK_OK && i < n; i++) {
        const stk_node *node = &graph->node[i];
        int when = is_small_update(graph, node) ? UPDATE : SOON;
        for (int j = 0; j < node->n_in; j++)
            if (age[graph->value[node->in[j]].node] >= UPDATE * n) when = BEHIND;
        age[i] = when * n + i;
    }
    if (status == STK_OK) status = stk_graph_rewrite_aged(graph, replace, age);
    free(replace);
    free(age);
    return status;
}

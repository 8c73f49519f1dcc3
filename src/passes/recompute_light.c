/* What is always recomputed instead of being kept: element-wise values and layer norms of values that are kept.
 *
 *   up -> square -> .. -> tanh -> .. -> gelu        up is kept for the gradient, the others are functions of it
 *
 * Keeping them would cost as many bytes again for each, and writing and reading those takes longer than the arithmetic,
 * which mostly joins the group of the gradient that reads them. Dropout is kept, since drawing its mask takes longer.
 */
#include <stdlib.h>

#include "base/error.h"
#include "passes/recompute.h"

/* Below that a kernel more costs more than memory. */
enum { LEAST_BYTES = 64 << 10 };

static bool is_light(const stk_node *node)
{
    return node->op == STK_OP_layer_norm ||
           (node->op != STK_OP_dropout && stk_op_get_rule(node->op)->kind == STK_KIND_ELEMENT);
}

bool stk_keeping_is_narrow_parameter(const stk_graph *graph, int32_t v)
{
    const stk_node *node = &graph->node[graph->value[v].node];
    return node->op == STK_OP_cast && graph->node[graph->value[node->in[0]].node].op == STK_OP_variable &&
           stk_dtype_bytes(graph->value[v].desc.dtype) < stk_dtype_bytes(graph->value[node->in[0]].desc.dtype);
}

/* Such a node stores nothing in a group that reads it. */
static bool is_read_through(const stk_node *node)
{
    return node->op == STK_OP_broadcast || node->op == STK_OP_reshape || node->op == STK_OP_constant;
}

/* Whether node i of the forward pass can be run again from what is there in the backward pass; can_make: of the nodes
 * before it. */
static bool can_run_again(const stk_keeping *k, int32_t i, const bool *can_make)
{
    const stk_graph *graph = k->graph;
    const stk_node *node = &graph->node[i];
    if (node->op == STK_OP_input || node->op == STK_OP_variable) return true;
    if (k->is_backward[i] || !(is_light(node) || is_read_through(node))) return false;
    for (int j = 0; j < node->n_in; j++)
        if (!k->is_kept[node->in[j]] && !can_make[graph->value[node->in[j]].node]) return false;
    return true;
}

stk_status stk_keeping_drop_light(stk_keeping *k, int32_t *n_dropped)
{
    const stk_graph *graph = k->graph;
    bool *can_make = calloc((size_t)k->n_nodes + 1, sizeof(*can_make));
    *n_dropped = 0;
    if (!can_make) return stk_fail_memory((size_t)k->n_nodes);
    for (int32_t i = 0; i < k->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        can_make[i] = can_run_again(k, i, can_make);
        int32_t v = node->first_out;
        if (!can_make[i] || !is_light(node) || !stk_keeping_may_drop(k, v)) continue;
        if (stk_keeping_is_narrow_parameter(graph, v)) continue;
        if (stk_desc_bytes(graph->value[v].desc) < LEAST_BYTES) continue;
        k->is_dropped[v] = true;
        ++*n_dropped;
    }
    free(can_make);
    return STK_OK;
}

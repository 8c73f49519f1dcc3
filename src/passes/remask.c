/* Takes dropout's mask from its result, where a ReLU made the zeros next to it:
 *
 *   select(x > 0, dropout(dy), 0)  with  y = dropout(x) of the same mask   becomes   select(y > 0, dy * 1/(1 - rate),
 * 0)
 *
 * since y is above zero just where x is and was kept. This is the gradient of dropout(relu(x)): its mask is then not
 * drawn a second time, and the ReLU's result need not be kept for it. The bits stay the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/passes.h"

static const stk_node *maker_of(const stk_graph *graph, int32_t value, stk_op op)
{
    const stk_node *node = &graph->node[graph->value[value].node];
    return node->op == op && !node->barrier ? node : NULL;
}

static bool is_zero(const stk_graph *graph, int32_t value)
{
    const stk_node *node = maker_of(graph, value, STK_OP_constant);
    return node && node->attrs.constant.value == 0;
}

/* The dropout of x with the mask of `like`, or NULL. */
static const stk_node *find_dropout(const stk_graph *graph, int32_t x, const stk_node *like, int n_nodes)
{
    for (int i = 0; i < n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op == STK_OP_dropout && node->in[0] == x && node->in[1] == like->in[1] &&
            node->in[2] == like->in[2] && stk_attrs_equal(&node->attrs, &like->attrs))
            return node;
    }
    return NULL;
}

/* The value that may stand for the select's, or -1. Only the first n_nodes were there before the pass. */
static int32_t remask(stk_graph *graph, const stk_node *select, int n_nodes)
{
    const stk_node *compare = maker_of(graph, select->in[0], STK_OP_compare);
    const stk_node *dropped = maker_of(graph, select->in[1], STK_OP_dropout);
    if (!compare || !dropped || compare->attrs.element.kind != STK_COMPARE_greater || dropped->attrs.dropout.rate >= 1)
        return -1;
    int32_t zero = select->in[2];
    if (!is_zero(graph, compare->in[1]) || !is_zero(graph, zero)) return -1;
    const stk_node *kept = find_dropout(graph, compare->in[0], dropped, n_nodes);
    if (!kept) return -1;
    stk_value y = stk_value_of(graph, kept->first_out), dy = stk_value_of(graph, dropped->in[0]);
    stk_value none = stk_value_of(graph, compare->in[1]);
    double scale = 1 / (1 - dropped->attrs.dropout.rate);
    /* From here on nodes may have moved. */
    stk_value factor = stk_graph_constant(graph, stk_value_dtype(dy), stk_value_shape(dy), scale);
    return stk_select(stk_greater(y, none), stk_mul(dy, factor), stk_value_of(graph, zero)).id;
}

stk_status pass_remask(stk_graph *graph, const stk_pass_options *options)
{
    enum { MADE = 4 }; /* values for each select */
    (void)options;
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    int n_nodes = graph->n_nodes;
    int32_t n_values = graph->n_values;
    int32_t *replace = stk_pass_identity(graph, MADE * n_nodes);
    if (!replace) STK_TRY(stk_fail_memory((size_t)(n_values + MADE * n_nodes) * sizeof(*replace)));
    for (int i = 0; i < n_nodes; i++) {
        if (graph->node[i].op != STK_OP_select || graph->node[i].barrier) continue;
        int32_t out = graph->node[i].first_out, with = remask(graph, &graph->node[i], n_nodes);
        STK_TRY(stk_graph_status(graph));
        if (with >= 0) replace[out] = with;
    }
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(replace);
    return status;
}

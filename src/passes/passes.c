/* What passes share: see passes/passes.h. */
#include "passes/passes.h"

#include <stdlib.h>

#include "base/error.h"

int32_t *stk_pass_identity(const stk_graph *graph, int32_t n_more)
{
    int32_t *replace = malloc(((size_t)graph->n_values + (size_t)n_more + 1) * sizeof(*replace));
    for (int32_t i = 0; replace && i < graph->n_values + n_more; i++)
        replace[i] = i;
    return replace;
}

int32_t *stk_pass_count_uses(const stk_graph *graph)
{
    int32_t *n = calloc((size_t)graph->n_values + 1, sizeof(*n));
    for (int i = 0; n && i < graph->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++)
            n[graph->node[i].in[j]]++;
    for (int i = 0; n && i < graph->n_roots; i++)
        n[graph->root[i].value]++;
    return n;
}

stk_status stk_pass_each_node(stk_graph *graph, stk_pass_visit visit)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    stk_status status = STK_OK;
    int32_t *replace = stk_pass_identity(graph, 0), *n_uses = stk_pass_count_uses(graph);
    if (!replace || !n_uses) STK_TRY(stk_fail_memory((size_t)graph->n_values * sizeof(*replace)));
    for (int32_t i = 0; i < graph->n_nodes; i++)
        STK_TRY(visit(graph, &graph->node[i], n_uses, replace));
    STK_TRY(stk_graph_rewrite(graph, replace));
done:
    free(replace);
    free(n_uses);
    return status;
}

static const stk_node *maker_of(const stk_graph *graph, int32_t value)
{
    return &graph->node[graph->value[value].node];
}

static stk_dtype wide_of(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F16 ? STK_F32 : dtype;
}

int32_t stk_pass_find_bias(const stk_graph *graph, int32_t value)
{
    stk_tensor_desc whole = graph->value[value].desc;
    const stk_node *node = maker_of(graph, value);
    if (node->op != STK_OP_broadcast) return -1;
    int32_t bias = node->in[0];
    node = maker_of(graph, bias);
    if (node->op == STK_OP_cast && graph->value[node->in[0]].desc.dtype == wide_of(whole.dtype)) bias = node->in[0];
    stk_tensor_desc desc = graph->value[bias].desc;
    bool fits = desc.dtype == wide_of(whole.dtype) && desc.shape.rank == 1 &&
                desc.shape.dim[0] == whole.shape.dim[whole.shape.rank - 1];
    return fits ? bias : -1;
}

stk_status stk_pass_ask_stop(const volatile int *stop)
{
    return stop && *stop ? stk_fail(STK_INTERRUPTED, "stopped while compiling") : STK_OK;
}

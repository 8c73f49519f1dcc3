#include "passes/passes.h"

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

/* Sums over all ranks, of several values at once: what is small costs as much alone. */
#include <stdio.h>

#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    if (call->n_in < 1 || call->n_in > STK_MOST_RANK_SUMS)
        return stk_fail(STK_INVALID, "needs 1 to %d values, not %d", STK_MOST_RANK_SUMS, call->n_in);
    stk_dtype dtype = call->in[0].dtype;
    if (dtype != STK_F32 && dtype != STK_F64 && dtype != STK_BF16)
        return stk_fail(STK_INVALID, "adds up f32, f64 or bf16, not %s", stk_dtype_name(dtype));
    call->n_out = call->n_in;
    for (int i = 0; i < call->n_in; i++) {
        char role[16];
        snprintf(role, sizeof(role), "x%d", i);
        STK_RETURN_IF_ERROR(stk_rule_need(role, call->in[i], dtype, call->in[i].shape));
        call->out[i] = call->in[i];
    }
    return STK_OK;
}

/* Every rank's y depends on every rank's x alike: the sum of what comes back. */
static stk_status grad(const stk_grad_call *call)
{
    stk_value dy[STK_MOST_RANK_SUMS];
    for (int i = 0; i < call->n_out; i++) {
        const stk_value_info *y = &call->graph->value[call->out[i].id];
        dy[i] = call->grad_out[i];
        if (dy[i].id < 0) dy[i] = stk_graph_constant(call->graph, y->desc.dtype, y->desc.shape, 0);
    }
    stk_value sum[STK_MOST_RANK_SUMS];
    stk_rank_sum(dy, call->n_in, sum);
    for (int i = 0; i < call->n_in; i++)
        if (call->need[i]) call->grad_in[i] = sum[i];
    return stk_rule_built(sum[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    for (int i = 0; i < call->n_in; i++)
        out->flops += stk_rule_count(call->in[i].shape);
}

const stk_op_rule stk_rule_rank_sum = {
    .name = "rank_sum",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .infer = infer,
    .grad = grad,
    .cost = cost,
};

void stk_rank_sum(const stk_value *x, int n, stk_value *out)
{
    stk_attrs attrs = stk_attrs_zero();
    stk_value y = n < 1 ? stk_rule_none(NULL) : stk_rule_add(STK_OP_rank_sum, &attrs, x, n);
    for (int i = 0; i < n; i++)
        out[i] = y.id < 0 ? y : stk_value_sibling(y, i);
}

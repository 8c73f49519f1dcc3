/* The sum, or the mean, of one value from each device, on each of them. */
#include <stdio.h>

#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    if (call->n_in < 1 || call->n_in > STK_MOST_DEVICES)
        return stk_fail(STK_INVALID, "needs 1 to %d values, not %d", STK_MOST_DEVICES, call->n_in);
    STK_RETURN_IF_ERROR(stk_rule_need_float("x0", call->in[0]));
    call->n_out = call->n_in;
    for (int i = 0; i < call->n_in; i++) {
        char role[16];
        snprintf(role, sizeof(role), "x%d", i);
        STK_RETURN_IF_ERROR(stk_rule_need(role, call->in[i], call->in[0].dtype, call->in[0].shape));
        call->out[i] = call->in[0];
    }
    return STK_OK;
}

/* Every y depends on every x alike: what the gradients of all y add up to. */
static stk_status grad(const stk_grad_call *call)
{
    stk_value dy[STK_MOST_DEVICES];
    for (int i = 0; i < call->n_out; i++) {
        dy[i] = call->grad_out[i];
        if (dy[i].id >= 0) continue;
        const stk_value_info *y = &call->graph->value[call->out[i].id];
        dy[i] = stk_copy_to(stk_graph_constant(call->graph, y->desc.dtype, y->desc.shape, 0), y->device);
    }
    stk_value sum[STK_MOST_DEVICES];
    stk_all_reduce(dy, call->n_in, call->attrs->all_reduce.mean, sum);
    for (int i = 0; i < call->n_in; i++)
        if (call->need[i]) call->grad_in[i] = sum[i];
    return stk_rule_built(sum[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = (double)call->n_in * stk_rule_count(call->in[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    stk_text_add(out, " kind=%s", attrs->all_reduce.mean ? "mean" : "sum");
}

const stk_op_rule stk_rule_all_reduce = {
    .name = "all_reduce",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

void stk_all_reduce(const stk_value *x, int n, bool mean, stk_value *out)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.all_reduce.mean = mean;
    stk_value y = n < 1 ? stk_rule_none(NULL) : stk_rule_add(STK_OP_all_reduce, &attrs, x, n);
    for (int i = 0; i < n; i++)
        out[i] = y.id < 0 ? y : stk_value_sibling(y, i);
}

/* Whether all elements of all inputs are finite. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    if (call->n_in < 1) return stk_fail(STK_INVALID, "needs at least one value");
    for (int i = 0; i < call->n_in; i++)
        STK_RETURN_IF_ERROR(stk_rule_need_float("x", call->in[i]));
    stk_rule_out(call, 0, STK_BOOL, stk_rule_scalar_shape());
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = 0;
    for (int i = 0; i < call->n_in; i++)
        out->flops += stk_rule_count(call->in[i].shape);
}

const stk_op_rule stk_rule_all_finite = {
    .name = "all_finite",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .cost = cost,
    .stops_gradient = true,
};

stk_value stk_all_finite(const stk_value *x, int n)
{
    return n < 1 ? stk_rule_none(NULL) : stk_rule_add(STK_OP_all_finite, NULL, x, n);
}

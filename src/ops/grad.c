/* A placeholder for d(sum of y) / dx, until autodiff replaces it. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_rule_need_float("y", call->in[0]));
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", call->in[1]));
    call->out[0] = call->in[1];
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    *out = (stk_cost){0};
}

const stk_op_rule stk_rule_grad = {
    .name = "grad",
    .kind = STK_KIND_LEAF,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
};

stk_value stk_grad(stk_value y, stk_value x)
{
    return stk_rule_add(STK_OP_grad, NULL, (stk_value[]){y, x}, 2);
}

/* A value bound before each run. */
#include "ops/rule.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc desc = stk_desc_make(call->attrs->dtype, call->attrs->shape);
    STK_RETURN_IF_ERROR(stk_desc_check(desc));
    call->out[0] = desc;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    (void)call;
    *out = (stk_cost){0};
}

const stk_op_rule stk_rule_input = {
    .name = "input",
    .kind = STK_KIND_LEAF,
    .n_in = 0,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
};

/* The maximum of each window; padding never wins. NaN wins, as in PyTorch. */
#include "ops/pool2d.h"

static stk_status infer(stk_op_call *call)
{
    return stk_pool2d_out(call->in[0], &call->attrs->window, &call->out[0]);
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_value in[3] = {call->in[0], call->out[0], call->grad_out[0]};
    call->grad_in[0] = stk_rule_add(STK_OP_max_pool2d_grad, call->attrs, in, 3);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->out[0].shape) * stk_rule_window_taps(&call->attrs->window);
}

const stk_op_rule stk_rule_max_pool2d = {
    .name = "max_pool2d",
    .kind = STK_KIND_OPAQUE,
    .n_in = 1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_FOLLOW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = stk_rule_print_window,
};

stk_value stk_max_pool2d_raw(stk_value x, stk_window window)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.window = window;
    return stk_rule_add(STK_OP_max_pool2d, &attrs, &x, 1);
}

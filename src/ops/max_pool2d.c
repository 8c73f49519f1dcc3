/* The maximum of each window; padding never wins. NaN wins, as in PyTorch. */
#include <math.h>

#include "ops/pool2d.h"

static stk_status infer(stk_op_call *call)
{
    return stk_pool_out(call->op, call->in[0], &call->attrs->window, &call->out[0]);
}

static stk_status grad(const stk_grad_call *call)
{
    if (!call->need[0] || call->grad_out[0].id < 0) return STK_OK;
    stk_value in[3] = {call->in[0], call->out[0], call->grad_out[0]};
    call->grad_in[0] = stk_rule_add(
        stk_value_shape(call->in[0]).rank == 5 ? STK_OP_max_pool3d_grad : STK_OP_max_pool2d_grad, call->attrs, in, 3);
    return stk_rule_built(call->grad_in[0]);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->out[0].shape) * stk_rule_window_taps(&call->attrs->window);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value x = call->in[0];
    stk_pool_taps taps;
    if (!stk_pool_find_taps(&call->attrs->window, stk_value_shape(x), stk_value_shape(call->out[0]), &taps)) return;
    stk_value padded = stk_pool_pad(&taps, x, -INFINITY), most = stk_pool_take(&taps, padded, 0);
    for (int i = 1; i < taps.n_taps; i++)
        most = stk_max(most, stk_pool_take(&taps, padded, i));
    call->made[0] = most;
}

STK_POOL_RULE(max_pool2d, 1, grad);
STK_POOL_RULE(max_pool3d, 1, grad);

static stk_value make(stk_op op, stk_value x, stk_window window)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.window = window;
    return stk_rule_add(op, &attrs, &x, 1);
}

stk_value stk_max_pool2d_raw(stk_value x, stk_window window)
{
    return make(STK_OP_max_pool2d, x, window);
}

stk_value stk_max_pool3d_raw(stk_value x, stk_window window)
{
    return make(STK_OP_max_pool3d, x, window);
}

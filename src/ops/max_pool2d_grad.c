/* The gradient of max_pool2d: the first maximum of each window, row by row, gets all. */
#include "ops/pool2d.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0], y;
    STK_RETURN_IF_ERROR(stk_pool_out(call->op, x, &call->attrs->window, &y));
    STK_RETURN_IF_ERROR(stk_rule_need("y", call->in[1], y.dtype, y.shape));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", call->in[2], y.dtype, y.shape));
    call->out[0] = x;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[2].shape) * stk_rule_window_taps(&call->attrs->window);
}

STK_POOL_RULE(max_pool2d_grad, 3, NULL);
STK_POOL_RULE(max_pool3d_grad, 3, NULL);

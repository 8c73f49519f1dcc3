/* The gradient of avg_pool2d: each pixel of a window gets an equal share. */
#include "ops/pool2d.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc dy = call->in[0], dx = stk_desc_make(dy.dtype, call->attrs->shape), y;
    STK_RETURN_IF_ERROR(stk_pool_out(call->op, dx, &call->attrs->window, &y));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, y.dtype, y.shape));
    call->out[0] = dx;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_rule_count(call->in[0].shape) * stk_rule_window_taps(&call->attrs->window);
}

STK_POOL_RULE(avg_pool2d_grad, 1, NULL);
STK_POOL_RULE(avg_pool3d_grad, 1, NULL);

/* The gradient of a convolution with respect to its image. */
#include "ops/conv2d.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc dy = call->in[0], weight = call->in[1], dx = stk_desc_make(dy.dtype, call->attrs->shape), y;
    STK_RETURN_IF_ERROR(stk_conv2d_out(dx, weight, &call->attrs->window, &y));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, y.dtype, y.shape));
    call->out[0] = dx;
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_conv2d_flops(call->in[0].shape, call->in[1].shape);
}

const stk_op_rule stk_rule_conv2d_grad_data = {
    .name = "conv2d_grad_data",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = stk_rule_print_window,
};

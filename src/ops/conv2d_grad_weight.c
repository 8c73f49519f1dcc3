/* The gradient of a convolution with respect to its weight: a long sum, so that it stays f32 for 16-bit x. */
#include "ops/conv2d.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0], dy = call->in[1], dweight = stk_desc_make(x.dtype, call->attrs->shape), y;
    STK_RETURN_IF_ERROR(stk_conv2d_out(x, dweight, &call->attrs->window, &y));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, y.dtype, y.shape));
    call->out[0] = stk_desc_make(stk_rule_stat_dtype(x.dtype), dweight.shape);
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_conv2d_flops(call->in[1].shape, call->out[0].shape);
}

const stk_op_rule stk_rule_conv2d_grad_weight = {
    .name = "conv2d_grad_weight",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    .cost = cost,
    .print = stk_rule_print_window,
};

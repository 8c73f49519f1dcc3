/* The gradient of a convolution with respect to its weight: a long sum, so that it stays f32 for 16-bit x. */
#include "ops/conv2d.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc x = call->in[0], dy = call->in[1], dweight = stk_desc_make(x.dtype, call->attrs->shape), y;
    STK_RETURN_IF_ERROR(stk_conv_out(call->op, x, dweight, &call->attrs->window, &y));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, y.dtype, y.shape));
    call->out[0] = stk_desc_make(stk_rule_stat_dtype(x.dtype), dweight.shape);
    return STK_OK;
}

/* dweight is linear in x and in dy. */
static stk_status grad(const stk_grad_call *call)
{
    stk_value x = call->in[0], dy = call->in[1], g = call->grad_out[0];
    if (g.id < 0) return STK_OK;
    g = stk_cast_to(g, stk_value_dtype(x));
    if (call->need[0]) {
        call->grad_in[0] = stk_conv_grad_data(call->attrs, dy, g, stk_value_shape(x));
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[0]));
    }
    if (call->need[1]) {
        call->grad_in[1] = stk_conv_forward(call->attrs, x, g);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[1]));
    }
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_conv_flops(call->in[1].shape, call->out[0].shape);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value x = call->in[0], dy = stk_conv_as_images(call->in[1]), all = stk_rule_none(call->graph);
    stk_shape weight = call->attrs->shape, one = weight;
    stk_conv_depths d = stk_conv_find_depths(call->attrs, stk_value_shape(x), weight, stk_value_shape(call->in[1]));
    one.dim[1] = 1;
    d.attrs.shape = STK_SHAPE(weight.dim[0], weight.dim[2], weight.dim[3], weight.dim[4]);
    x = stk_conv_pad_depth(&d, x);
    for (int i = 0; i < d.window.kernel[0]; i++) {
        stk_value in[2] = {stk_conv_take_depth(&d, x, i), dy};
        stk_value depth = stk_reshape(stk_rule_add(STK_OP_conv2d_grad_weight, &d.attrs, in, 2), one);
        all = i ? stk_concat((stk_value[]){all, depth}, 2, 1) : depth;
    }
    call->made[0] = all;
}

STK_CONV_RULE(conv2d_grad_weight, 2, NULL);
STK_CONV_RULE(conv3d_grad_weight, 2, decompose);

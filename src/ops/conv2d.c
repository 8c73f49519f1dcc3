/* Convolution as deep learning means it: cross-correlation, NHWC images, OHWI weights. */
#include "ops/conv2d.h"

stk_status stk_conv2d_out(stk_tensor_desc x, stk_tensor_desc weight, const stk_window *window, stk_tensor_desc *y)
{
    char tx[STK_SHAPE_TEXT_BYTES], tw[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_rule_need_rank("x", x, 4));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("weight", weight, 4));
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.dtype != weight.dtype)
        return stk_fail(STK_INVALID, "x %s and weight %s need equal dtypes", stk_desc_text(x, tx),
                        stk_desc_text(weight, tw));
    int64_t out[2], groups = window->groups, c = x.shape.dim[3], o = weight.shape.dim[0];
    STK_RETURN_IF_ERROR(stk_rule_window_out(window, x.shape, out));
    if (weight.shape.dim[1] != window->kernel[0] || weight.shape.dim[2] != window->kernel[1])
        return stk_fail(STK_INVALID, "weight %s does not have the window's kernel %dx%d",
                        stk_shape_text(weight.shape, tw), window->kernel[0], window->kernel[1]);
    if (c == STK_ANY || c % groups || o % groups || weight.shape.dim[3] * groups != c)
        return stk_fail(STK_INVALID, "weight %s does not fit x %s in %lld groups: it must be [O,%d,%d,C/groups]",
                        stk_shape_text(weight.shape, tw), stk_shape_text(x.shape, tx), (long long)groups,
                        window->kernel[0], window->kernel[1]);
    *y = stk_desc_make(x.dtype, STK_SHAPE(x.shape.dim[0], out[0], out[1], o));
    return STK_OK;
}

double stk_conv2d_flops(stk_shape y, stk_shape weight)
{
    return 2 * stk_rule_count(y) * (double)weight.dim[1] * (double)weight.dim[2] * (double)weight.dim[3];
}

static stk_status infer(stk_op_call *call)
{
    return stk_conv2d_out(call->in[0], call->in[1], &call->attrs->window, &call->out[0]);
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value x = call->in[0], weight = call->in[1], dy = call->grad_out[0];
    stk_attrs attrs = *call->attrs;
    if (dy.id < 0) return STK_OK;
    if (call->need[0]) {
        attrs.shape = stk_value_shape(x);
        call->grad_in[0] = stk_rule_add(STK_OP_conv2d_grad_data, &attrs, (stk_value[]){dy, weight}, 2);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[0]));
    }
    if (call->need[1]) {
        attrs.shape = stk_value_shape(weight);
        call->grad_in[1] = stk_rule_add(STK_OP_conv2d_grad_weight, &attrs, (stk_value[]){x, dy}, 2);
        call->grad_in[1] = stk_cast_to(call->grad_in[1], stk_value_dtype(weight));
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[1]));
    }
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_conv2d_flops(call->out[0].shape, call->in[1].shape);
}

const stk_op_rule stk_rule_conv2d = {
    .name = "conv2d",
    .kind = STK_KIND_OPAQUE,
    .n_in = 2,
    .n_out = 1,
    .autocast = STK_AUTOCAST_NARROW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = stk_rule_print_window,
};

stk_value stk_conv2d_raw(stk_value x, stk_value weight, stk_window window)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.window = window;
    return stk_rule_add(STK_OP_conv2d, &attrs, (stk_value[]){x, weight}, 2);
}

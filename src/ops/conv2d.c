/* Convolution as deep learning means it: cross-correlation, NHWC images, OHWI weights; NDHWC volumes, ODHWI weights. A
 * third input is a bias for each channel of y, in f32 (f64 for f64), added before the activation, and y is rounded
 * last.
 */
#include "ops/conv2d.h"

#include <stdio.h>

static int dims_of(stk_op op)
{
    return op == STK_OP_conv3d || op == STK_OP_conv3d_grad_data || op == STK_OP_conv3d_grad_weight ? 3 : 2;
}

/* "3,3", with that character between them. */
static const char *kernel_text(const stk_window *window, int n_dims, char between, char text[48])
{
    int n = snprintf(text, 48, "%d%c%d", window->kernel[0], between, window->kernel[1]);
    if (n_dims == 3) snprintf(text + n, (size_t)(48 - n), "%c%d", between, window->kernel[2]);
    return text;
}

static stk_status check_kernel(stk_shape weight, const stk_window *window)
{
    char text[STK_SHAPE_TEXT_BYTES], kernel[48];
    for (int i = 0; i < weight.rank - 2; i++)
        if (weight.dim[1 + i] != window->kernel[i])
            return stk_fail(STK_INVALID, "weight %s does not have the window's kernel %s", stk_shape_text(weight, text),
                            kernel_text(window, weight.rank - 2, 'x', kernel));
    return STK_OK;
}

stk_status stk_conv_out(stk_op op, stk_tensor_desc x, stk_tensor_desc weight, const stk_window *window,
                        stk_tensor_desc *y)
{
    char tx[STK_SHAPE_TEXT_BYTES], tw[STK_SHAPE_TEXT_BYTES], tk[48];
    int rank = dims_of(op) + 2;
    STK_RETURN_IF_ERROR(stk_rule_need_rank("x", x, rank));
    STK_RETURN_IF_ERROR(stk_rule_need_rank("weight", weight, rank));
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (x.dtype != weight.dtype)
        return stk_fail(STK_INVALID, "x %s and weight %s need equal dtypes", stk_desc_text(x, tx),
                        stk_desc_text(weight, tw));
    int64_t out[3], groups = window->groups, c = x.shape.dim[rank - 1], o = weight.shape.dim[0];
    STK_RETURN_IF_ERROR(stk_rule_window_out(window, x.shape, out));
    STK_RETURN_IF_ERROR(check_kernel(weight.shape, window));
    if (c == STK_ANY || c % groups || o % groups || weight.shape.dim[rank - 1] != c / groups)
        return stk_fail(STK_INVALID, "weight %s does not fit x %s in %lld groups: it must be [O,%s,C/groups]",
                        stk_shape_text(weight.shape, tw), stk_shape_text(x.shape, tx), (long long)groups,
                        kernel_text(window, rank - 2, ',', tk));
    *y = stk_desc_make(x.dtype, stk_rule_window_shape(x.shape, out, o));
    return STK_OK;
}

double stk_conv_flops(stk_shape y, stk_shape weight)
{
    double n = 2 * stk_rule_count(y);
    for (int i = 1; i < weight.rank; i++)
        n *= (double)weight.dim[i];
    return n;
}

void stk_conv_print(const stk_attrs *attrs, stk_text *out)
{
    stk_rule_print_window(attrs, out);
    if (attrs->activation == STK_ACTIVATION_RELU) stk_text_add(out, " relu");
}

stk_value stk_conv_forward(const stk_attrs *attrs, stk_value x, stk_value weight)
{
    stk_attrs a = stk_attrs_zero();
    a.window = attrs->window;
    return stk_rule_add(stk_value_shape(x).rank == 5 ? STK_OP_conv3d : STK_OP_conv2d, &a, (stk_value[]){x, weight}, 2);
}

stk_value stk_conv_grad_data(const stk_attrs *attrs, stk_value dy, stk_value weight, stk_shape x)
{
    stk_attrs a = stk_attrs_zero();
    a.window = attrs->window;
    a.shape = x;
    return stk_rule_add(x.rank == 5 ? STK_OP_conv3d_grad_data : STK_OP_conv2d_grad_data, &a, (stk_value[]){dy, weight},
                        2);
}

/* A long sum, which the op leaves in f32 for 16-bit x; the gradient has the dtype of the weight. */
stk_value stk_conv_grad_weight(const stk_attrs *attrs, stk_value x, stk_value dy, stk_value weight)
{
    stk_attrs a = stk_attrs_zero();
    a.window = attrs->window;
    a.shape = stk_value_shape(weight);
    stk_value dweight = stk_rule_add(a.shape.rank == 5 ? STK_OP_conv3d_grad_weight : STK_OP_conv2d_grad_weight, &a,
                                     (stk_value[]){x, dy}, 2);
    return stk_cast_to(dweight, stk_value_dtype(weight));
}

/* --- the rules --- */

stk_status stk_conv_need_inputs(const stk_op_call *call)
{
    if (call->n_in == 2 || call->n_in == 3) return STK_OK;
    return stk_fail(STK_INVALID, "%d inputs do not fit: it takes 2 and perhaps a bias", call->n_in);
}

stk_status stk_conv_need_bias(const stk_op_call *call)
{
    if (call->n_in != 3) return STK_OK;
    stk_tensor_desc y = call->out[0];
    stk_shape bias = stk_rule_vector_shape(y.shape.dim[y.shape.rank - 1]);
    return stk_rule_need("bias", call->in[2], stk_rule_stat_dtype(y.dtype), bias);
}

static stk_status infer(stk_op_call *call)
{
    STK_RETURN_IF_ERROR(stk_conv_need_inputs(call));
    STK_RETURN_IF_ERROR(stk_conv_out(call->op, call->in[0], call->in[1], &call->attrs->window, &call->out[0]));
    return stk_conv_need_bias(call);
}

stk_value stk_conv_grad_sum(const stk_grad_call *call)
{
    stk_value y = call->out[0], dy = call->grad_out[0];
    if (call->attrs->activation != STK_ACTIVATION_RELU) return dy;
    stk_value zero = stk_rule_scalar(dy.graph, stk_value_dtype(y), 0);
    return stk_select(stk_greater(y, zero), dy, zero);
}

stk_status stk_conv_grad_bias(const stk_grad_call *call, stk_value dy)
{
    if (call->n_in != 3 || !call->need[2]) return STK_OK;
    stk_value wide = stk_cast_to(dy, stk_value_dtype(call->in[2]));
    call->grad_in[2] = stk_reduce_sum(wide, (1u << (stk_value_shape(dy).rank - 1)) - 1u);
    return stk_rule_built(call->grad_in[2]);
}

double stk_conv_finish_flops(const stk_op_call *call)
{
    int n = (call->n_in == 3) + (call->attrs->activation != STK_ACTIVATION_NONE);
    return n * stk_rule_count(call->out[0].shape);
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value x = call->in[0], weight = call->in[1], dy;
    if (call->grad_out[0].id < 0) return STK_OK;
    dy = stk_conv_grad_sum(call);
    STK_RETURN_IF_ERROR(stk_rule_built(dy));
    if (call->need[0]) {
        call->grad_in[0] = stk_conv_grad_data(call->attrs, dy, weight, stk_value_shape(x));
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[0]));
    }
    if (call->need[1]) {
        call->grad_in[1] = stk_conv_grad_weight(call->attrs, x, dy, weight);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[1]));
    }
    return stk_conv_grad_bias(call, dy);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_conv_flops(call->out[0].shape, call->in[1].shape) + stk_conv_finish_flops(call);
}

STK_CONV_RULE(conv2d, -1);
STK_CONV_RULE(conv3d, -1);

static stk_value make(stk_op op, stk_value x, stk_value weight, stk_window window)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.window = window;
    return stk_rule_add(op, &attrs, (stk_value[]){x, weight}, 2);
}

stk_value stk_conv2d_raw(stk_value x, stk_value weight, stk_window window)
{
    return make(STK_OP_conv2d, x, weight, window);
}

stk_value stk_conv3d_raw(stk_value x, stk_value weight, stk_window window)
{
    return make(STK_OP_conv3d, x, weight, window);
}

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

/* --- volumes as images --- */

stk_conv_depths stk_conv_find_depths(const stk_attrs *attrs, stk_shape x, stk_shape weight, stk_shape y)
{
    const stk_window *w = &attrs->window;
    stk_conv_depths d = {.attrs = stk_attrs_zero(), .window = *w, .x = x, .y = y, .weight = weight};
    for (int i = 0; i < 2; i++) {
        d.attrs.window.kernel[i] = w->kernel[1 + i];
        d.attrs.window.stride[i] = w->stride[1 + i];
        d.attrs.window.pad_low[i] = w->pad_low[1 + i];
        d.attrs.window.pad_high[i] = w->pad_high[1 + i];
        d.attrs.window.dilation[i] = w->dilation[1 + i];
    }
    d.attrs.window.groups = w->groups;
    d.padded = x.dim[1] + w->pad_low[0] + w->pad_high[0];
    return d;
}

stk_value stk_conv_as_images(stk_value volumes)
{
    stk_shape s = stk_value_shape(volumes);
    return stk_reshape(volumes, STK_SHAPE(s.dim[0] * s.dim[1], s.dim[2], s.dim[3], s.dim[4]));
}

static stk_attrs depths_of(const stk_conv_depths *d, int i)
{
    stk_attrs attrs = stk_attrs_zero();
    for (int k = 0; k < d->x.rank; k++) {
        attrs.slice.step[k] = 1;
        attrs.slice.stop[k] = INT64_MAX;
    }
    attrs.slice.start[1] = (int64_t)i * d->window.dilation[0];
    attrs.slice.step[1] = d->window.stride[0];
    attrs.slice.stop[1] = attrs.slice.start[1] + (d->y.dim[1] - 1) * d->window.stride[0] + 1;
    return attrs;
}

stk_value stk_conv_take_depth(const stk_conv_depths *d, stk_value padded, int i)
{
    stk_attrs a = depths_of(d, i);
    return stk_conv_as_images(stk_slice(padded, a.slice.start, a.slice.stop, a.slice.step));
}

stk_value stk_conv_put_depth(const stk_conv_depths *d, stk_value images, int i)
{
    stk_attrs attrs = depths_of(d, i);
    stk_shape taken = d->x;
    attrs.shape = d->x;
    attrs.shape.dim[1] = d->padded;
    taken.dim[1] = d->y.dim[1];
    images = stk_reshape(images, taken);
    return stk_rule_add(STK_OP_slice_grad, &attrs, &images, 1);
}

stk_value stk_conv_pad_depth(const stk_conv_depths *d, stk_value x)
{
    return stk_compose_pad(x, 1, d->window.pad_low[0], d->window.pad_high[0], 0);
}

stk_value stk_conv_cut_depth(const stk_conv_depths *d, stk_value padded)
{
    return d->padded == d->x.dim[1] ? padded : stk_compose_cut(padded, 1, d->window.pad_low[0], d->x.dim[1]);
}

stk_value stk_conv_weight_depth(const stk_conv_depths *d, stk_value weight, int i)
{
    stk_shape s = d->weight;
    return stk_reshape(stk_compose_cut(weight, 1, i, 1), STK_SHAPE(s.dim[0], s.dim[2], s.dim[3], s.dim[4]));
}

stk_value stk_conv_compose_finish(const stk_decompose_call *call, stk_value sum)
{
    if (call->n_in == 3) sum = stk_add(stk_compose_wide(sum), call->in[2]);
    return stk_compose_relu(sum, call->attrs->activation == STK_ACTIVATION_RELU);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value x = call->in[0], weight = call->in[1], sum = stk_rule_none(call->graph);
    stk_conv_depths d =
        stk_conv_find_depths(call->attrs, stk_value_shape(x), stk_value_shape(weight), stk_value_shape(call->out[0]));
    stk_value padded = stk_conv_pad_depth(&d, x);
    for (int i = 0; i < d.window.kernel[0]; i++) {
        stk_value part =
            stk_conv_forward(&d.attrs, stk_conv_take_depth(&d, padded, i), stk_conv_weight_depth(&d, weight, i));
        part = stk_compose_wide(part);
        sum = i ? stk_add(sum, part) : part;
    }
    stk_compose_set(call, 0, stk_conv_compose_finish(call, stk_reshape(sum, d.y)));
}

STK_CONV_RULE(conv2d, -1, NULL);
STK_CONV_RULE(conv3d, -1, decompose);

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

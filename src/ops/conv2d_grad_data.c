/* The gradient of a convolution with respect to its image; as an op of its own, the transposed convolution, which may
 * take a bias for each channel and do a ReLU as conv2d does.
 */
#include "ops/conv2d.h"

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc dy = call->in[0], weight = call->in[1], dx = stk_desc_make(dy.dtype, call->attrs->shape), y;
    STK_RETURN_IF_ERROR(stk_conv_need_inputs(call));
    STK_RETURN_IF_ERROR(stk_conv_out(call->op, dx, weight, &call->attrs->window, &y));
    STK_RETURN_IF_ERROR(stk_rule_need("dy", dy, y.dtype, y.shape));
    call->out[0] = dx;
    return stk_conv_need_bias(call);
}

/* dx is linear in dy and in the weight. */
static stk_status grad(const stk_grad_call *call)
{
    stk_value dy = call->in[0], weight = call->in[1], g;
    if (call->grad_out[0].id < 0) return STK_OK;
    g = stk_conv_grad_sum(call);
    STK_RETURN_IF_ERROR(stk_rule_built(g));
    if (call->need[0]) {
        call->grad_in[0] = stk_conv_forward(call->attrs, g, weight);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[0]));
    }
    if (call->need[1]) {
        call->grad_in[1] = stk_conv_grad_weight(call->attrs, g, dy, weight);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[1]));
    }
    return stk_conv_grad_bias(call, g);
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    out->flops = stk_conv_flops(call->in[0].shape, call->in[1].shape) + stk_conv_finish_flops(call);
}

static void decompose(const stk_decompose_call *call)
{
    stk_value dy = call->in[0], weight = call->in[1], sum = stk_rule_none(call->graph);
    stk_conv_depths d =
        stk_conv_find_depths(call->attrs, call->attrs->shape, stk_value_shape(weight), stk_value_shape(dy));
    stk_shape images = STK_SHAPE(d.y.dim[0] * d.y.dim[1], d.x.dim[2], d.x.dim[3], d.x.dim[4]);
    dy = stk_conv_as_images(dy);
    for (int i = 0; i < d.window.kernel[0]; i++) {
        stk_value part = stk_conv_grad_data(&d.attrs, dy, stk_conv_weight_depth(&d, weight, i), images);
        part = stk_conv_put_depth(&d, stk_compose_wide(part), i);
        sum = i ? stk_add(sum, part) : part;
    }
    stk_compose_set(call, 0, stk_conv_compose_finish(call, stk_conv_cut_depth(&d, sum)));
}

STK_CONV_RULE(conv2d_grad_data, -1, NULL);
STK_CONV_RULE(conv3d_grad_data, -1, decompose);

/* --- transposed convolution --- */

static stk_status check_more(const stk_window *w, int n_dims, const int32_t *more)
{
    for (int i = 0; i < n_dims; i++) {
        const char *side = stk_rule_side(n_dims, i);
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1)
            return stk_fail(STK_INVALID,
                            "the window's kernel %d, stride %d and dilation %d of the %s must be 1 or more",
                            w->kernel[i], w->stride[i], w->dilation[i], side);
        if (more[i] < 0 || more[i] >= w->stride[i])
            return stk_fail(STK_INVALID, "the output's further %d pixels of the %s must be less than the stride %d",
                            more[i], side, w->stride[i]);
    }
    return w->groups < 1 ? stk_fail(STK_INVALID, "the window's groups %d must be 1 or more", w->groups) : STK_OK;
}

static stk_status find_shape(stk_shape x, stk_shape weight, const stk_window *w, int n_dims, const int32_t *more,
                             stk_shape *out)
{
    char tx[STK_SHAPE_TEXT_BYTES], tw[STK_SHAPE_TEXT_BYTES];
    if (x.rank != n_dims + 2 || weight.rank != n_dims + 2)
        return stk_fail(STK_INVALID, "x %s and weight %s of a transposed convolution must have rank %d",
                        stk_shape_text(x, tx), stk_shape_text(weight, tw), n_dims + 2);
    STK_RETURN_IF_ERROR(check_more(w, n_dims, more));
    int64_t size[3];
    for (int i = 0; i < n_dims; i++) {
        if (x.dim[1 + i] == STK_ANY)
            return stk_fail(STK_INVALID, "the image %s must have a known %s", stk_shape_text(x, tx),
                            stk_rule_side(n_dims, i));
        size[i] = stk_dim_times(x.dim[1 + i] - 1, w->stride[i]) - w->pad_low[i] - w->pad_high[i] +
                  (int64_t)w->dilation[i] * (w->kernel[i] - 1) + 1 + more[i];
        if (x.dim[1 + i] < 1 || size[i] < 1)
            return stk_fail(STK_INVALID, "the output of x %s would have %lld pixels of the %s", stk_shape_text(x, tx),
                            (long long)size[i], stk_rule_side(n_dims, i));
    }
    *out = stk_rule_window_shape(x, size, stk_dim_times(weight.dim[n_dims + 1], w->groups));
    return STK_OK;
}

static stk_value transpose(stk_value x, stk_value weight, const stk_window *window, int n_dims, const int32_t *more)
{
    stk_attrs attrs = stk_attrs_zero();
    stk_shape shape;
    if (!x.graph || x.id < 0 || weight.id < 0) return stk_rule_none(x.graph);
    stk_status status = find_shape(stk_value_shape(x), stk_value_shape(weight), window, n_dims, more, &shape);
    if (status != STK_OK) return stk_rule_fail(x.graph, status);
    attrs.window = *window;
    return stk_conv_grad_data(&attrs, x, weight, shape);
}

stk_value stk_conv2d_transpose_raw(stk_value x, stk_value weight, stk_window window, const int32_t more[2])
{
    return transpose(x, weight, &window, 2, more);
}

stk_value stk_conv3d_transpose_raw(stk_value x, stk_value weight, stk_window window, const int32_t more[3])
{
    return transpose(x, weight, &window, 3, more);
}

/* Convolutions and their gradients, in two and three dimensions: x [N,spatial,C], weight [O,spatial,C/groups]. */
#include <inttypes.h>

#include "device/pjrt/lower/product.h"

/* One stablehlo.convolution. Axes are named as there: b batch or o features' places in lhs, rhs and result. */
typedef struct convolution {
    int n_spatial;
    const char *lhs, *rhs, *result; /* the places of what is no space, first and last: "bf", "oi", "bf" */
    int64_t stride[3], low[3], high[3], lhs_dilation[3], rhs_dilation[3];
    int64_t groups, batch_groups;
} convolution;

static void add_axes(pjrt_module *m, const char *ends, int n_spatial)
{
    stk_text_add(&m->body, "[%c", ends[0]);
    for (int i = 0; i < n_spatial; i++)
        stk_text_add(&m->body, ", %d", i);
    stk_text_add(&m->body, ", %c]", ends[1]);
}

static pjrt_value make_convolution(pjrt_module *m, const stk_op_call *call, const convolution *c, pjrt_value lhs,
                                   pjrt_value rhs, stk_tensor_desc desc)
{
    char list[PJRT_LIST_TEXT], a[PJRT_TYPE_TEXT], b[PJRT_TYPE_TEXT], y_type[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, desc);
    int n = c->n_spatial;
    stk_text_add(&m->body, "%%%d = stablehlo.convolution(%%%d, %%%d) dim_numbers = ", y.id, lhs.id, rhs.id);
    add_axes(m, c->lhs, n);
    stk_text_add(&m->body, "x");
    add_axes(m, c->rhs, n);
    stk_text_add(&m->body, "->");
    add_axes(m, c->result, n);
    stk_text_add(&m->body, ", window = {stride = %s, pad = [", pjrt_list_text(c->stride, n, list));
    for (int i = 0; i < n; i++)
        stk_text_add(&m->body, "%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "", c->low[i], c->high[i]);
    stk_text_add(&m->body, "], lhs_dilate = %s", pjrt_list_text(c->lhs_dilation, n, list));
    stk_text_add(&m->body, ", rhs_dilate = %s}", pjrt_list_text(c->rhs_dilation, n, list));
    stk_text_add(&m->body,
                 " {batch_group_count = %" PRId64 " : i64, feature_group_count = %" PRId64
                 " : i64, precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]} : (%s, %s) -> %s\n",
                 c->batch_groups, c->groups, pjrt_takes_all_bits(call) ? "HIGHEST" : "DEFAULT",
                 pjrt_takes_all_bits(call) ? "HIGHEST" : "DEFAULT", pjrt_type_text(lhs.desc, a),
                 pjrt_type_text(rhs.desc, b), pjrt_type_text(desc, y_type));
    return y;
}

static convolution plain(int n_spatial)
{
    return (convolution){.n_spatial = n_spatial,
                         .stride = {1, 1, 1},
                         .lhs_dilation = {1, 1, 1},
                         .rhs_dilation = {1, 1, 1},
                         .groups = 1,
                         .batch_groups = 1};
}

/* Bias and ReLU in the sums, then the dtype of the result. */
static pjrt_value finish(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value y)
{
    if (n_in == 3) y = pjrt_add_bias(m, y, in[2]);
    if (call->attrs->activation == STK_ACTIVATION_RELU) y = pjrt_binary(m, "maximum", y, pjrt_constant(m, y.desc, 0));
    return pjrt_convert(m, y, call->out[0].dtype);
}

static stk_tensor_desc sum_desc(const stk_op_call *call)
{
    return stk_desc_make(pjrt_sum_dtype(call->in[0].dtype), call->out[0].shape);
}

static stk_status lower_forward(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,
                                pjrt_value *out)
{
    const stk_window *w = &call->attrs->window;
    convolution c = plain(in[0].desc.shape.rank - 2);
    c.lhs = c.result = "bf";
    c.rhs = "oi";
    c.groups = w->groups;
    for (int i = 0; i < c.n_spatial; i++) {
        c.stride[i] = w->stride[i];
        c.low[i] = w->pad_low[i];
        c.high[i] = w->pad_high[i];
        c.rhs_dilation[i] = w->dilation[i];
    }
    out[0] = finish(m, call, n_in, in, make_convolution(m, call, &c, in[0], in[1], sum_desc(call)));
    return STK_OK;
}

/* [groups * O, spatial, C] as [O, spatial, groups * C]. */
static pjrt_value swap_groups(pjrt_module *m, pjrt_value weight, int64_t groups)
{
    stk_shape x = weight.desc.shape, split = {.rank = x.rank + 1, .dim = {groups, x.dim[0] / groups}}, y = x;
    int64_t permutation[STK_MAX_RANK] = {0};
    for (int i = 1; i < x.rank; i++) {
        split.dim[i + 1] = x.dim[i];
        permutation[i - 1] = i;
    }
    permutation[x.rank - 1] = 0;
    permutation[x.rank] = x.rank;
    y.dim[0] = x.dim[0] / groups;
    y.dim[x.rank - 1] = x.dim[x.rank - 1] * groups;
    return pjrt_reshape(m, pjrt_transpose(m, pjrt_reshape(m, weight, split), permutation), y);
}

/* dy spread out by the stride, by the weight turned around. */
static stk_status lower_grad_data(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,
                                  pjrt_value *out)
{
    static const int64_t space[3] = {1, 2, 3};
    const stk_window *w = &call->attrs->window;
    stk_shape dx = call->out[0].shape, dy = in[0].desc.shape;
    convolution c = plain(dy.rank - 2);
    c.lhs = c.result = "bf";
    c.rhs = "io";
    c.groups = w->groups;
    for (int i = 0; i < c.n_spatial; i++) {
        int64_t reach = (int64_t)w->dilation[i] * (w->kernel[i] - 1);
        int64_t spread = (dy.dim[i + 1] - 1) * w->stride[i] + 1;
        c.lhs_dilation[i] = w->stride[i];
        c.rhs_dilation[i] = w->dilation[i];
        c.low[i] = reach - w->pad_low[i];
        c.high[i] = dx.dim[i + 1] - spread + reach - c.low[i];
    }
    pjrt_value weight = w->groups > 1 ? swap_groups(m, in[1], w->groups) : in[1];
    weight = pjrt_reverse(m, weight, space, c.n_spatial);
    out[0] = finish(m, call, n_in, in, make_convolution(m, call, &c, in[0], weight, sum_desc(call)));
    return STK_OK;
}

/* x by dy as the kernel: what was the batch is summed over, and steps of the kernel are the stride. */
static stk_status lower_grad_weight(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,
                                    pjrt_value *out)
{
    const stk_window *w = &call->attrs->window;
    stk_shape x = in[0].desc.shape, dy = in[1].desc.shape;
    convolution c = plain(x.rank - 2);
    (void)n_in;
    c.lhs = c.result = "fb";
    c.rhs = "io";
    c.batch_groups = w->groups;
    for (int i = 0; i < c.n_spatial; i++) {
        int64_t reach = (int64_t)w->dilation[i] * (w->kernel[i] - 1);
        c.stride[i] = w->dilation[i];
        c.rhs_dilation[i] = w->stride[i];
        c.low[i] = w->pad_low[i];
        c.high[i] = reach + (dy.dim[i + 1] - 1) * w->stride[i] + 1 - x.dim[i + 1] - c.low[i];
    }
    out[0] = pjrt_convert(m, make_convolution(m, call, &c, in[0], in[1], sum_desc(call)), call->out[0].dtype);
    return STK_OK;
}

#define X(name, body)                                                                                                  \
    stk_status pjrt_lower_##name(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in,              \
                                 pjrt_value *out)                                                                      \
    {                                                                                                                  \
        return body(m, call, n_in, in, out);                                                                           \
    }
X(conv2d, lower_forward)
X(conv2d_grad_data, lower_grad_data)
X(conv2d_grad_weight, lower_grad_weight)
X(conv3d, lower_forward)
X(conv3d_grad_data, lower_grad_data)
X(conv3d_grad_weight, lower_grad_weight)
#undef X

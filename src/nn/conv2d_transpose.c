/* Transposed convolution over images: Zeiler et al. 2010. Parameters and sizes are PyTorch's ConvTranspose2d's. */
#include "nn/layer.h"

static bool check(const stk_layer *layer, const stk_conv2d_transpose_config *c)
{
    int64_t n_channels = layer->shape.dim[3];
    if (!stk_layer_need_range(layer, "the number of filters", c->filters, 1, INT32_MAX) ||
        !stk_layer_need_range(layer, "the kernel", c->kernel, 1, STK_MOST_WINDOW) ||
        !stk_layer_need_range(layer, "the stride", c->stride, 1, STK_MOST_WINDOW) ||
        !stk_layer_need_range(layer, "the dilation", c->dilation, 1, STK_MOST_WINDOW) ||
        !stk_layer_need_range(layer, "the padding", c->padding, 0, STK_MOST_WINDOW) ||
        !stk_layer_need_range(layer, "the output padding", c->output_padding, 0, c->stride - 1) ||
        !stk_layer_need_range(layer, "the number of groups", c->groups, 1, INT32_MAX))
        return false;
    if (n_channels % c->groups || c->filters % c->groups) {
        stk_layer_fail(layer, "%lld input channels and %lld filters do not divide into %d groups",
                       (long long)n_channels, (long long)c->filters, c->groups);
        return false;
    }
    return true;
}

stk_value stk_conv2d_transpose_with(stk_value x, const stk_conv2d_transpose_config *config)
{
    stk_conv2d_transpose_config c = config ? *config : (stk_conv2d_transpose_config){0};
    stk_layer layer;
    if (c.kernel == 0) c.kernel = 2;
    if (c.stride == 0) c.stride = c.kernel;
    if (c.dilation == 0) c.dilation = 1;
    if (c.groups == 0) c.groups = 1;
    if (!stk_layer_begin(&layer, x, "conv2d_transpose", c.name)) return stk_value_none(x.graph);
    if (!stk_layer_need_space(&layer, 2) || !check(&layer, &c)) return stk_value_none(x.graph);

    stk_window window = stk_window_make(c.kernel, c.kernel);
    window.groups = c.groups;
    for (int i = 0; i < 2; i++) {
        window.stride[i] = c.stride;
        window.dilation[i] = c.dilation;
        window.pad_low[i] = window.pad_high[i] = c.padding;
    }
    int64_t n_channels = layer.shape.dim[3], n_group = c.filters / c.groups;
    /* PyTorch counts the fans of the convolution that this is the transpose of. */
    double area = (double)c.kernel * c.kernel, fan_in = area * (double)n_group, fan_out = area * (double)n_channels;
    stk_value weight = stk_layer_variable(&layer, "weight", STK_SHAPE(n_channels, c.kernel, c.kernel, n_group),
                                          stk_initializer_resolve(c.init, fan_in, fan_out), true);
    stk_value y = stk_conv2d_transpose_raw(x, weight, window, (int32_t[]){c.output_padding, c.output_padding});
    if (!c.no_bias)
        y = stk_add(
            y, stk_layer_variable(&layer, "bias", STK_SHAPE(c.filters), stk_initializer_bias(c.init, fan_in), true));
    return stk_layer_end(&layer, y);
}

stk_value stk_conv2d_transpose(stk_value x, int64_t filters, int kernel, int stride)
{
    /* 0 stands for the default in a configuration only; here it is a mistake. */
    return stk_conv2d_transpose_with(x, &(stk_conv2d_transpose_config){.filters = filters,
                                                                       .kernel = kernel ? kernel : -1,
                                                                       .stride = stride ? stride : -1});
}

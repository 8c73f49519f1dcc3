/* Convolution over images [N,H,W,C] and volumes [N,D,H,W,C], with the ways of padding that people know. */
#include "nn/layer.h"

/* Padding of one side of the image, before and after it. */
static void set_padding(const stk_conv2d_config *c, int64_t size, int32_t *low, int32_t *high)
{
    int64_t reach = (int64_t)c->dilation * (c->kernel - 1), total = reach;
    *low = *high = 0;
    if (c->padding < 0) return;
    if (c->padding > 0) {
        *low = *high = c->padding;
        return;
    }
    /* TensorFlow pads so that the output has size / stride pixels, rounded up, and no more than that needs. */
    if (c->like_keras) total = ((size + c->stride - 1) / c->stride - 1) * c->stride + reach + 1 - size;
    if (total < 0) total = 0;
    *low = (int32_t)(total / 2);
    *high = (int32_t)(total - total / 2);
}

static bool check(const stk_layer *layer, const stk_conv2d_config *c)
{
    int64_t n_channels = layer->shape.dim[layer->shape.rank - 1];
    if (!stk_layer_need_range(layer, "the number of filters", c->filters, 1, INT32_MAX) ||
        !stk_layer_need_range(layer, "the kernel", c->kernel, 1, STK_MOST_WINDOW) ||
        !stk_layer_need_range(layer, "the stride", c->stride, 1, STK_MOST_WINDOW) ||
        !stk_layer_need_range(layer, "the dilation", c->dilation, 1, STK_MOST_WINDOW) ||
        !stk_layer_need_range(layer, "the padding", c->padding, -1, STK_MOST_WINDOW) ||
        !stk_layer_need_range(layer, "the number of groups", c->groups, 1, INT32_MAX))
        return false;
    if (n_channels % c->groups || c->filters % c->groups) {
        stk_layer_fail(layer, "%lld input channels and %lld filters do not divide into %d groups",
                       (long long)n_channels, (long long)c->filters, c->groups);
        return false;
    }
    if (c->init == STK_INIT_DIRAC && c->groups > 1) {
        stk_layer_fail(layer, "init dirac is for one group, and there are %d", c->groups);
        return false;
    }
    return true;
}

static stk_value convolve(stk_value x, const char *kind, int n_dims, stk_conv2d_config c)
{
    stk_layer layer;
    if (c.kernel == 0) c.kernel = 3;
    if (c.stride == 0) c.stride = 1;
    if (c.dilation == 0) c.dilation = 1;
    if (c.groups == 0) c.groups = 1;
    if (!stk_layer_begin(&layer, x, kind, c.name)) return stk_value_none(x.graph);
    if (!stk_layer_need_space(&layer, n_dims) || !check(&layer, &c)) return stk_value_none(x.graph);

    stk_window window = stk_window_make(c.kernel, c.kernel);
    stk_shape shape = {.rank = n_dims + 2, .dim = {c.filters}};
    double area = 1;
    window.groups = c.groups;
    for (int i = 0; i < n_dims; i++) {
        window.kernel[i] = c.kernel;
        window.stride[i] = c.stride;
        window.dilation[i] = c.dilation;
        set_padding(&c, layer.shape.dim[1 + i], &window.pad_low[i], &window.pad_high[i]);
        shape.dim[1 + i] = c.kernel;
        area *= c.kernel;
    }
    shape.dim[n_dims + 1] = layer.shape.dim[n_dims + 1] / c.groups;
    double fan_in = area * (double)shape.dim[n_dims + 1], fan_out = area * (double)c.filters;
    stk_value weight =
        stk_layer_variable(&layer, "weight", shape, stk_initializer_resolve(c.init, fan_in, fan_out), true);
    stk_value y = n_dims == 2 ? stk_conv2d_raw(x, weight, window) : stk_conv3d_raw(x, weight, window);
    if (!c.no_bias)
        y = stk_add(
            y, stk_layer_variable(&layer, "bias", STK_SHAPE(c.filters), stk_initializer_bias(c.init, fan_in), true));
    return stk_layer_end(&layer, y);
}

static stk_conv2d_config config_or_default(const stk_conv2d_config *config)
{
    return config ? *config : (stk_conv2d_config){0};
}

stk_value stk_conv2d_with(stk_value x, const stk_conv2d_config *config)
{
    return convolve(x, "conv2d", 2, config_or_default(config));
}

stk_value stk_conv2d(stk_value x, int64_t filters, int kernel)
{
    /* 0 stands for the default in a configuration only; here it is a mistake. */
    return stk_conv2d_with(x, &(stk_conv2d_config){.filters = filters, .kernel = kernel ? kernel : -1});
}

stk_value stk_conv3d_with(stk_value x, const stk_conv2d_config *config)
{
    return convolve(x, "conv3d", 3, config_or_default(config));
}

stk_value stk_conv3d(stk_value x, int64_t filters, int kernel)
{
    return stk_conv3d_with(x, &(stk_conv2d_config){.filters = filters, .kernel = kernel ? kernel : -1});
}

stk_value stk_depthwise_conv2d_with(stk_value x, const stk_conv2d_config *config)
{
    stk_conv2d_config c = config_or_default(config);
    stk_shape shape = stk_value_shape(x);
    /* A shape that does not fit is said by the layer. */
    int64_t channels = shape.rank == 4 && shape.dim[3] > 0 && shape.dim[3] <= INT32_MAX ? shape.dim[3] : 1;
    c.groups = (int)channels;
    if (c.filters == 0) c.filters = channels;
    return convolve(x, "depthwise_conv2d", 2, c);
}

stk_value stk_depthwise_conv2d(stk_value x, int kernel)
{
    return stk_depthwise_conv2d_with(x, &(stk_conv2d_config){.kernel = kernel ? kernel : -1});
}

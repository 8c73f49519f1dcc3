/* Transposed convolution over images and volumes: Zeiler et al. 2010. Parameters and sizes are those of PyTorch's
 * ConvTranspose2d and 3d.
 */
#include "nn/layer_list.h"
#include "stoker/nn/layers.h"

static bool check(const stk_layer *layer, const stk_conv2d_transpose_config *c)
{
    int64_t n_channels = layer->shape.dim[layer->shape.rank - 1];
    if (!stk_layer_need_range(layer, "the number of filters", c->filters, 1, INT32_MAX) ||
        !stk_layer_need_range(layer, "the kernel", c->kernel, 1, STK_MOST_KERNEL) ||
        !stk_layer_need_range(layer, "the stride", c->stride, 1, STK_MOST_KERNEL) ||
        !stk_layer_need_range(layer, "the dilation", c->dilation, 1, STK_MOST_KERNEL) ||
        !stk_layer_need_range(layer, "the padding", c->padding, 0, STK_MOST_KERNEL) ||
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

static stk_value convolve(stk_value x, const char *kind, int n_dims, const stk_conv2d_transpose_config *config)
{
    stk_conv2d_transpose_config c = config ? *config : (stk_conv2d_transpose_config){0};
    stk_layer layer;
    if (c.kernel == 0) c.kernel = 2;
    if (c.stride == 0) c.stride = c.kernel;
    if (c.dilation == 0) c.dilation = 1;
    if (c.groups == 0) c.groups = 1;
    if (!stk_layer_begin(&layer, x, kind, c.name)) return stk_value_none(x.graph);
    if (!stk_layer_need_space(&layer, n_dims) || !check(&layer, &c)) return stk_value_none(x.graph);

    int64_t n_channels = layer.shape.dim[n_dims + 1], n_group = c.filters / c.groups;
    stk_window window =
        n_dims == 2 ? stk_window_make(c.kernel, c.kernel) : stk_window_make_3d(c.kernel, c.kernel, c.kernel);
    stk_shape shape = {.rank = n_dims + 2, .dim = {n_channels}};
    double area = 1;
    window.groups = c.groups;
    for (int i = 0; i < n_dims; i++) {
        window.stride[i] = c.stride;
        window.dilation[i] = c.dilation;
        window.pad_low[i] = window.pad_high[i] = c.padding;
        shape.dim[1 + i] = c.kernel;
        area *= c.kernel;
    }
    shape.dim[n_dims + 1] = n_group;
    /* PyTorch counts the fans of the convolution that this is the transpose of. */
    double fan_in = area * (double)n_group, fan_out = area * (double)n_channels;
    stk_value weight =
        stk_layer_variable(&layer, "weight", shape, stk_initializer_resolve(c.init, fan_in, fan_out), true);
    const int32_t more[3] = {c.output_padding, c.output_padding, c.output_padding};
    stk_value y = n_dims == 2 ? stk_conv2d_transpose_raw(x, weight, window, more)
                              : stk_conv3d_transpose_raw(x, weight, window, more);
    if (!c.no_bias)
        y = stk_add(
            y, stk_layer_variable(&layer, "bias", STK_SHAPE(c.filters), stk_initializer_bias(c.init, fan_in), true));
    return stk_layer_end(&layer, y);
}

stk_value stk_conv2d_transpose_with(stk_value x, const stk_conv2d_transpose_config *config)
{
    return convolve(x, "conv2d_transpose", 2, config);
}

stk_value stk_conv3d_transpose_with(stk_value x, const stk_conv2d_transpose_config *config)
{
    return convolve(x, "conv3d_transpose", 3, config);
}

stk_value stk_conv2d_transpose(stk_value x, int64_t filters, int kernel, int stride)
{
    /* 0 stands for the default in a configuration only; here it is a mistake. */
    return stk_conv2d_transpose_with(x, &(stk_conv2d_transpose_config){.filters = filters,
                                                                       .kernel = kernel ? kernel : -1,
                                                                       .stride = stride ? stride : -1});
}

/* --- in a recipe --- */

static stk_conv2d_transpose_config read_config(const stk_yaml_node *s)
{
    int kernel = (int)stk_yaml_int(s, "kernel", 2);
    return (stk_conv2d_transpose_config){.filters = stk_yaml_int(s, "filters", 0),
                                         .kernel = kernel,
                                         .stride = (int)stk_yaml_int(s, "stride", kernel),
                                         .padding = (int)stk_yaml_int(s, "padding", 0),
                                         .output_padding = (int)stk_yaml_int(s, "output_padding", 0),
                                         .groups = (int)stk_yaml_int(s, "groups", 1),
                                         .no_bias = !stk_yaml_bool(s, "bias"),
                                         .init = stk_initializer_of(s)};
}

static stk_status build_2d(const stk_yaml_node *s, stk_value *x)
{
    stk_conv2d_transpose_config config = read_config(s);
    *x = stk_conv2d_transpose_with(*x, &config);
    return STK_OK;
}

static stk_status build_3d(const stk_yaml_node *s, stk_value *x)
{
    stk_conv2d_transpose_config config = read_config(s);
    *x = stk_conv3d_transpose_with(*x, &config);
    return STK_OK;
}

static const stk_key keys[] = {STK_KEY_COUNT("filters", 1e6, "Channels of the output."),
                               {.name = "kernel",
                                .type = STK_KEY_INT,
                                .least = 1,
                                .most = 1024,
                                .default_value = "2",
                                .doc = "Both sides of the kernel."},
                               {.name = "stride",
                                .type = STK_KEY_INT,
                                .least = 1,
                                .most = 1024,
                                .doc = "How many times larger the image becomes. Default: kernel."},
                               {.name = "padding",
                                .type = STK_KEY_INT,
                                .least = 0,
                                .most = 1024,
                                .default_value = "0",
                                .doc = "Pixels that are left out on each side."},
                               {.name = "output_padding",
                                .type = STK_KEY_INT,
                                .least = 0,
                                .most = 1024,
                                .default_value = "0",
                                .doc = "Further pixels at the end, fewer than stride."},
                               {.name = "groups",
                                .type = STK_KEY_INT,
                                .least = 1,
                                .most = 1e6,
                                .default_value = "1",
                                .doc = "Groups of channels that do not mix."},
                               STK_KEY_BIAS,
                               STK_KEY_INITIALIZER,
                               STK_KEY_DTYPE,
                               {.name = NULL}};

const stk_layer_class stk_layer_class_conv2d_transpose = {
    .key = {.name = "conv2d_transpose",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Transposed convolution: a larger image."},
    .build = build_2d,
};
const stk_layer_class stk_layer_class_conv3d_transpose = {
    .key = {.name = "conv3d_transpose",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "Transposed convolution: a larger volume."},
    .build = build_3d,
};

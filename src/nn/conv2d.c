/* Convolution over images [N,H,W,C] and volumes [N,D,H,W,C], with the ways of padding that people know. */
#include <stdlib.h>
#include <string.h>

#include "nn/layer_list.h"

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
        !stk_layer_need_range(layer, "the kernel", c->kernel, 1, STK_MOST_KERNEL) ||
        !stk_layer_need_range(layer, "the stride", c->stride, 1, STK_MOST_KERNEL) ||
        !stk_layer_need_range(layer, "the dilation", c->dilation, 1, STK_MOST_KERNEL) ||
        !stk_layer_need_range(layer, "the padding", c->padding, -1, STK_MOST_KERNEL) ||
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

/* --- in a recipe --- */

static stk_status read_padding(const stk_yaml_node *padding, int *out)
{
    char *end;
    *out = -1;
    if (!strcmp(padding->text, "none") || !strcmp(padding->text, "0")) return STK_OK;
    *out = 0;
    if (!strcmp(padding->text, "same")) return STK_OK;
    long pixels = strtol(padding->text, &end, 10);
    if (*end || pixels < 0 || pixels > 1024)
        return stk_yaml_fail(padding, "'padding' must be same, none, or pixels from 0 to 1024, not '%.40s'",
                             padding->text);
    *out = (int)pixels;
    return STK_OK;
}

static stk_status build(const stk_yaml_node *s, stk_value (*make)(stk_value, const stk_conv2d_config *), stk_value *x)
{
    stk_conv2d_config config = {.filters = stk_yaml_int(s, "filters", 0),
                                .kernel = (int)stk_yaml_int(s, "kernel", 3),
                                .stride = (int)stk_yaml_int(s, "stride", 1),
                                .dilation = (int)stk_yaml_int(s, "dilation", 1),
                                .groups = (int)stk_yaml_int(s, "groups", 1),
                                .no_bias = !stk_yaml_bool(s, "bias"),
                                .like_keras = stk_yaml_is(s, "like", "keras"),
                                .init = stk_initializer_of(s)};
    STK_RETURN_IF_ERROR(read_padding(stk_yaml_get(s, "padding"), &config.padding));
    *x = make(*x, &config);
    return STK_OK;
}

static stk_status build_2d(const stk_yaml_node *s, stk_value *x)
{
    return build(s, stk_conv2d_with, x);
}

static stk_status build_3d(const stk_yaml_node *s, stk_value *x)
{
    return build(s, stk_conv3d_with, x);
}

static stk_status build_depthwise(const stk_yaml_node *s, stk_value *x)
{
    return build(s, stk_depthwise_conv2d_with, x);
}

#define SIZES                                                                                                          \
    {.name = "kernel",                                                                                                 \
     .type = STK_KEY_INT,                                                                                              \
     .least = 1,                                                                                                       \
     .most = 1024,                                                                                                     \
     .default_value = "3",                                                                                             \
     .doc = "All sides of the kernel."},                                                                               \
        {.name = "stride",                                                                                             \
         .type = STK_KEY_INT,                                                                                          \
         .least = 1,                                                                                                   \
         .most = 1024,                                                                                                 \
         .default_value = "1",                                                                                         \
         .doc = "Pixels between outputs."},                                                                            \
    {                                                                                                                  \
        .name = "dilation", .type = STK_KEY_INT, .least = 1, .most = 1024, .default_value = "1",                       \
        .doc = "Pixels between taps."                                                                                  \
    }
#define REST                                                                                                           \
    {.name = "padding", .type = STK_KEY_TEXT, .default_value = "same", .doc = "same, none, or pixels on each side."},  \
        STK_KEY_BIAS, STK_KEY_INITIALIZER, STK_KEY_LIKE, STK_KEY_DTYPE,                                                \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }
static const stk_key keys[] = {STK_KEY_COUNT("filters", 1e6, "Channels of the output."),
                               SIZES,
                               {.name = "groups",
                                .type = STK_KEY_INT,
                                .least = 1,
                                .most = 1e6,
                                .default_value = "1",
                                .doc = "Groups of channels that do not mix."},
                               REST};
static const stk_key depthwise_keys[] = {
    {.name = "filters",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 1e6,
     .doc = "Channels of the output, a multiple of the input's. Default: as many."},
    SIZES,
    REST};

const stk_layer_class stk_layer_class_conv2d = {
    .key = {.name = "conv2d", .type = STK_KEY_MAP, .keys = keys, .doc = "Convolution."},
    .build = build_2d,
};
const stk_layer_class stk_layer_class_conv3d = {
    .key = {.name = "conv3d", .type = STK_KEY_MAP, .keys = keys, .doc = "Convolution of volumes."},
    .build = build_3d,
};
const stk_layer_class stk_layer_class_depthwise_conv2d = {
    .key = {.name = "depthwise_conv2d",
            .type = STK_KEY_MAP,
            .keys = depthwise_keys,
            .doc = "A filter for each channel."},
    .build = build_depthwise,
};

/* Pooling and flattening: layers that change the shape and have no parameters. */
#include "nn/layer_list.h"
#include "stoker/nn/layers.h"

static stk_value pool(stk_value x, const char *kind, int n_dims, int size, int stride, int padding,
                      stk_value (*make)(stk_value, stk_window))
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, kind, NULL)) return stk_value_none(x.graph);
    if (!stk_layer_need_space(&layer, n_dims) || !stk_layer_need_range(&layer, "the size", size, 1, STK_MOST_KERNEL) ||
        !stk_layer_need_range(&layer, "the stride", stride, 1, STK_MOST_KERNEL) ||
        /* More padding would give windows without a single pixel. */
        !stk_layer_need_range(&layer, "the padding", padding, 0, size / 2))
        return stk_value_none(x.graph);
    stk_window window = stk_window_make(size, size);
    for (int i = 0; i < n_dims; i++) {
        window.kernel[i] = size;
        window.stride[i] = stride;
        window.dilation[i] = 1;
        window.pad_low[i] = window.pad_high[i] = padding;
    }
    return stk_layer_end(&layer, make(x, window));
}

stk_value stk_max_pool_with(stk_value x, int size, int stride, int padding)
{
    return pool(x, "max_pool", 2, size, stride, padding, stk_max_pool2d_raw);
}

stk_value stk_avg_pool_with(stk_value x, int size, int stride, int padding)
{
    return pool(x, "avg_pool", 2, size, stride, padding, stk_avg_pool2d_raw);
}

stk_value stk_max_pool3d_with(stk_value x, int size, int stride, int padding)
{
    return pool(x, "max_pool3d", 3, size, stride, padding, stk_max_pool3d_raw);
}

stk_value stk_avg_pool3d_with(stk_value x, int size, int stride, int padding)
{
    return pool(x, "avg_pool3d", 3, size, stride, padding, stk_avg_pool3d_raw);
}

stk_value stk_max_pool(stk_value x, int size)
{
    return stk_max_pool_with(x, size, size, 0);
}

stk_value stk_avg_pool(stk_value x, int size)
{
    return stk_avg_pool_with(x, size, size, 0);
}

stk_value stk_max_pool3d(stk_value x, int size)
{
    return stk_max_pool3d_with(x, size, size, 0);
}

stk_value stk_avg_pool3d(stk_value x, int size)
{
    return stk_avg_pool3d_with(x, size, size, 0);
}

stk_value stk_global_pool(stk_value x)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "global_pool", NULL)) return stk_value_none(x.graph);
    int n_dims = layer.shape.rank == 5 ? 3 : 2;
    if (!stk_layer_need_space(&layer, n_dims)) return stk_value_none(x.graph);
    return stk_layer_end(&layer, stk_reduce_mean(x, n_dims == 3 ? 1u << 1 | 1u << 2 | 1u << 3 : 1u << 1 | 1u << 2));
}

stk_value stk_flatten(stk_value x)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "flatten", NULL)) return stk_value_none(x.graph);
    const stk_shape *shape = &layer.shape;
    if (shape->rank == 2) return x;
    bool known = shape->rank > 0;
    for (int i = 1; i < shape->rank; i++)
        known = known && shape->dim[i] > 0;
    if (!known) {
        char text[STK_SHAPE_TEXT_BYTES];
        return stk_layer_fail(&layer, "its input is %s, and must be [N,...] of known size",
                              stk_shape_text(*shape, text));
    }
    int64_t count = stk_shape_product(*shape, 1, shape->rank);
    return stk_layer_end(&layer, stk_reshape(x, STK_SHAPE(shape->dim[0], count)));
}

/* The axes between batch and channels of [N,...,C]; 0 with an error kept where there are none. */
static uint32_t inner_axes(const stk_layer *layer)
{
    int rank = layer->shape.rank;
    if (!stk_layer_need_float(layer)) return 0;
    if (rank >= 3) return ((1u << (rank - 1)) - 1u) & ~1u;
    char text[STK_SHAPE_TEXT_BYTES];
    stk_layer_fail(layer, "its input is %s, and must be [N,...,C] with something in between",
                   stk_shape_text(layer->shape, text));
    return 0;
}

stk_value stk_global_max_pool(stk_value x)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "global_max_pool", NULL)) return stk_value_none(x.graph);
    uint32_t axes = inner_axes(&layer);
    return axes ? stk_layer_end(&layer, stk_reduce_max(x, axes)) : stk_value_none(x.graph);
}

stk_value stk_global_mean(stk_value x)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "global_pool", NULL)) return stk_value_none(x.graph);
    uint32_t axes = inner_axes(&layer);
    return axes ? stk_layer_end(&layer, stk_reduce_mean(x, axes)) : stk_value_none(x.graph);
}

/* --- in a recipe --- */

static stk_status build(const stk_yaml_node *s, stk_value (*make)(stk_value, int, int, int), stk_value *x)
{
    int size = (int)stk_yaml_int(s, "size", 2);
    *x = make(*x, size, (int)stk_yaml_int(s, "stride", size), (int)stk_yaml_int(s, "padding", 0));
    return STK_OK;
}

static const stk_key keys[] = {
    STK_KEY_COUNT("size", 1024, "All sides of the window."),
    {.name = "stride", .type = STK_KEY_INT, .least = 1, .most = 1024, .doc = "Pixels between windows. Default: size."},
    {.name = "padding",
     .type = STK_KEY_INT,
     .least = 0,
     .most = 1024,
     .default_value = "0",
     .doc = "Pixels on each side."},
    STK_KEY_DTYPE,
    {.name = NULL}};

#define POOL(kind, text)                                                                                               \
    static stk_status build_##kind(const stk_yaml_node *s, stk_value *x)                                               \
    {                                                                                                                  \
        return build(s, stk_##kind##_with, x);                                                                         \
    }                                                                                                                  \
    const stk_layer_class stk_layer_class_##kind = {                                                                   \
        .key = {.name = #kind, .type = STK_KEY_MAP, .keys = keys, .doc = text},                                        \
        .build = build_##kind,                                                                                         \
    };
POOL(max_pool, "The largest of each window.")
POOL(avg_pool, "The mean of each window; padding is not counted.")
POOL(max_pool3d, "The same for volumes.")
POOL(avg_pool3d, "The same for volumes.")

const stk_layer_class stk_layer_class_global_pool = {
    .key = {.name = "global_pool",
            .type = STK_KEY_NONE,
            .doc = "The mean of the whole image or volume, for each channel."},
    .apply = stk_global_mean,
};
const stk_layer_class stk_layer_class_global_max_pool = {
    .key = {.name = "global_max_pool", .type = STK_KEY_NONE, .doc = "The largest of all positions, for each channel."},
    .apply = stk_global_max_pool,
};
const stk_layer_class stk_layer_class_flatten = {
    .key = {.name = "flatten", .type = STK_KEY_NONE, .doc = "An image to one row."},
    .apply = stk_flatten,
};

/* Larger images and volumes without parameters. */
#include "nn/layer_list.h"
#include "stoker/nn/layers.h"

enum { MOST_SCALE = 64 };

static bool begin(stk_layer *layer, stk_value x, const char *kind, int scale)
{
    if (!stk_layer_begin(layer, x, kind, NULL)) return false;
    int n_dims = layer->shape.rank == 5 ? 3 : 2;
    return stk_layer_need_space(layer, n_dims) && stk_layer_need_range(layer, "the scale", scale, 1, MOST_SCALE);
}

/* Each element of an axis scale times: an axis of 1 behind it becomes one of scale. */
static stk_value repeat_axis(stk_value x, int axis, int scale)
{
    stk_shape shape = stk_value_shape(x), all = shape, many;
    all.dim[axis] *= scale;
    stk_shape one = {.rank = shape.rank + 1};
    for (int i = 0, j = 0; i < one.rank; i++)
        one.dim[i] = i == axis + 1 ? 1 : shape.dim[j++];
    many = one;
    many.dim[axis + 1] = scale;
    return stk_reshape(stk_broadcast(stk_reshape(x, one), many), all);
}

stk_value stk_upsample_nearest(stk_value x, int scale)
{
    stk_layer layer;
    if (!begin(&layer, x, "upsample", scale)) return stk_value_none(x.graph);
    if (scale == 1) return x;
    for (int axis = 1; axis < layer.shape.rank - 1; axis++)
        x = repeat_axis(x, axis, scale);
    return stk_layer_end(&layer, x);
}

/* How much of element j is in element i of the longer axis: [n * scale, n], two numbers a row that add up to 1. */
static stk_value make_weights(const stk_layer *layer, int64_t n, int scale)
{
    stk_graph *graph = layer->graph;
    stk_dtype dtype = layer->dtype;
    stk_value zero = stk_graph_constant(graph, dtype, (stk_shape){0}, 0);
    stk_value last = stk_graph_constant(graph, dtype, (stk_shape){0}, (double)(n - 1));
    stk_value at = stk_iota(graph, STK_I32, STK_SHAPE(n * scale, 1), 0);
    /* The middle of pixel i lies at (i + 0.5) / scale - 0.5 of the shorter axis, and never outside of it. */
    at = stk_shift_by(stk_scale_by(stk_shift_by(stk_cast_to(at, dtype), 0.5), 1.0 / scale), -0.5);
    at = stk_min(stk_max(at, zero), last);
    stk_value j = stk_cast_to(stk_iota(graph, STK_I32, STK_SHAPE(1, n), 1), dtype);
    stk_value apart = stk_abs(stk_sub(at, j));
    return stk_max(stk_sub(stk_graph_constant(graph, dtype, (stk_shape){0}, 1), apart), zero);
}

/* Moves the axis to the end, multiplies by the weights, and moves it back. */
static stk_value stretch_axis(const stk_layer *layer, stk_value x, int axis, int scale)
{
    stk_shape shape = stk_value_shape(x);
    int32_t there[STK_MAX_RANK], back[STK_MAX_RANK];
    int at = 0;
    for (int i = 0; i < shape.rank; i++)
        if (i != axis) there[at++] = i;
    there[at] = axis;
    for (int i = 0; i < shape.rank; i++)
        back[there[i]] = i;
    stk_value weights = make_weights(layer, shape.dim[axis], scale);
    return stk_transpose(stk_matmul(stk_transpose(x, there), weights, false, true), back);
}

stk_value stk_upsample_linear(stk_value x, int scale)
{
    stk_layer layer;
    if (!begin(&layer, x, "upsample", scale)) return stk_value_none(x.graph);
    if (scale == 1) return x;
    for (int axis = 1; axis < layer.shape.rank - 1; axis++)
        x = stretch_axis(&layer, x, axis, scale);
    return stk_layer_end(&layer, x);
}

/* --- in a recipe --- */

static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    int scale = (int)stk_yaml_int(s, "scale", 1);
    *x = stk_yaml_is(s, "mode", "linear") ? stk_upsample_linear(*x, scale) : stk_upsample_nearest(*x, scale);
    return STK_OK;
}

static const char *const mode_words[] = {"nearest", "linear", NULL};
static const stk_key keys[] = {STK_KEY_COUNT("scale", MOST_SCALE, "How many times larger each side becomes."),
                               {.name = "mode",
                                .type = STK_KEY_WORD,
                                .words = mode_words,
                                .default_value = "nearest",
                                .doc = "linear: bilinear, of volumes trilinear, without aligned corners."},
                               STK_KEY_DTYPE,
                               {.name = NULL}};

const stk_layer_class stk_layer_class_upsample = {
    .key = {.name = "upsample", .type = STK_KEY_MAP, .keys = keys, .doc = "A larger image or volume."},
    .build = build,
};

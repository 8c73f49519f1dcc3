/* A small convolutional network for volumes and clips. */
#include "nn/model_list.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/networks.h"

/* 2x2x2, but sides that are 1 stay. */
static stk_value halve(stk_value x)
{
    stk_shape shape = stk_value_shape(x);
    stk_window window = stk_window_make_3d(1, 1, 1);
    for (int i = 0; i < 3 && shape.rank == 5; i++)
        if (shape.dim[1 + i] > 1) window.kernel[i] = window.stride[i] = 2;
    return stk_max_pool3d_raw(x, window);
}

stk_value stk_cnn3d(stk_value x, const int64_t *widths, int n_widths, int64_t classes)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "cnn3d", NULL)) return stk_value_none(x.graph);
    if (!stk_layer_need_space(&layer, 3) || !stk_layer_need_range(&layer, "the number of widths", n_widths, 1, 64))
        return stk_value_none(x.graph);
    for (int i = 0; i < n_widths; i++) {
        if (i > 0) x = halve(x);
        x = stk_conv3d_with(
            x, &(stk_conv2d_config){.filters = widths[i], .no_bias = true, .init = STK_INIT_HE_NORMAL_FAN_OUT});
        x = stk_relu(stk_batch_norm(x));
    }
    return stk_dense(stk_global_pool(x), classes);
}

/* --- in a recipe --- */

static stk_status build(const stk_model_call *call, stk_value *out)
{
    int64_t widths[STK_MOST_WIDTHS];
    int n;
    STK_RETURN_IF_ERROR(stk_some_widths_of(call->settings, "widths", widths, &n));
    *out = stk_cnn3d(call->x, widths, n, call->n_classes);
    return STK_OK;
}

static const stk_key keys[] = {
    STK_KEY_WIDTHS("widths", "[16, 32, 64]", "Filters of each convolution; 2x2x2 max pooling stands between them."),
    STK_KEY_CLASSES("the data"),
    {.name = NULL}};

const stk_model_class stk_model_class_cnn3d = {
    .key =
        {.name = "cnn3d", .type = STK_KEY_MAP, .keys = keys, .no_short = true, .doc = "Volumes or clips to classes."},
    .has_classes = true,
    .build = build,
    .sample = {{.of = "16 x 32 x 32 x 1, 4 classes", .fields = "image: [16, 32, 32, 1]", .n_classes = 4}},
    .place = 120,
};

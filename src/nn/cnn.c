/* A plain convolutional network. */
#include "nn/model_list.h"

stk_value stk_cnn(stk_value x, const int64_t *widths, int n_widths, int64_t classes)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "cnn", NULL)) return stk_value_none(x.graph);
    if (!stk_layer_need_range(&layer, "the number of widths", n_widths, 1, INT32_MAX)) return stk_value_none(x.graph);
    if (!widths) return stk_layer_fail(&layer, "the widths are missing");
    for (int i = 0; i < n_widths; i++) {
        if (i > 0) x = stk_max_pool(x, 2);
        x = stk_conv2d_with(x, &(stk_conv2d_config){.filters = widths[i], .no_bias = true});
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
    *out = stk_cnn(call->x, widths, n, call->n_classes);
    return STK_OK;
}

static const stk_key keys[] = {
    STK_KEY_WIDTHS("widths", "[32, 64, 128]", "Filters of each convolution; 2x2 max pooling stands between them."),
    STK_KEY_CLASSES("the folder of images"),
    {.name = NULL}};

const stk_model_class stk_model_class_cnn = {
    .key = {.name = "cnn",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "3x3 convolutions with batch norm, ReLU and pooling, global mean, dense."},
    .has_classes = true,
    .build = build,
    .sample = {{.of = "32 x 32 x 3, 10 classes", .fields = "image: [32, 32, 3]", .n_classes = 10}},
    .place = 20,
};

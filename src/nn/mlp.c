/* The multi-layer perceptron. */
#include "nn/model_list.h"

stk_value stk_mlp(stk_value x, const int64_t *hidden, int n_hidden, double dropout, int64_t classes)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "mlp", NULL)) return stk_value_none(x.graph);
    if (!stk_layer_need_range(&layer, "the number of hidden layers", n_hidden, 0, INT32_MAX))
        return stk_value_none(x.graph);
    if (!hidden && n_hidden) return stk_layer_fail(&layer, "the hidden widths are missing");
    x = stk_flatten(x);
    for (int i = 0; i < n_hidden; i++)
        x = stk_dropout(stk_relu(stk_dense(x, hidden[i])), dropout);
    return stk_dense(x, classes);
}

/* --- in a recipe --- */

static stk_status build(const stk_model_call *call, stk_value *out)
{
    int64_t hidden[STK_MOST_WIDTHS];
    int n;
    STK_RETURN_IF_ERROR(stk_widths_of(call->settings, "hidden", hidden, &n));
    *out = stk_mlp(call->x, hidden, n, stk_yaml_real(call->settings, "dropout", 0), call->n_classes);
    return STK_OK;
}

static const stk_key keys[] = {STK_KEY_WIDTHS("hidden", "[128]", "The widths of the hidden layers."),
                               {.name = "dropout",
                                .type = STK_KEY_REAL,
                                .default_value = "0",
                                .least = 0,
                                .most = 0.99,
                                .doc = "The rate after each hidden layer."},
                               STK_KEY_CLASSES("the folder of images"),
                               {.name = NULL}};

const stk_model_class stk_model_class_mlp = {
    .key = {.name = "mlp",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "Flatten, dense layers with ReLU, dense."},
    .has_classes = true,
    .build = build,
    .sample = {{.of = "28 x 28 x 1, 10 classes", .fields = "image: [28, 28, 1]", .n_classes = 10}},
    .place = 10,
};

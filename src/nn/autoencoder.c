/* A convolutional autoencoder: Hinton & Salakhutdinov 2006, with convolutions. */
#include "nn/model_list.h"
#include "stoker/nn/networks.h"

enum { MOST_WIDTHS = 8 };

stk_value stk_autoencoder(stk_value x, const int64_t *widths, int n_widths, int64_t code)
{
    stk_layer layer;
    if (!stk_layer_begin(&layer, x, "autoencoder", NULL)) return stk_value_none(x.graph);
    if (!stk_layer_need_space(&layer, 2) ||
        !stk_layer_need_range(&layer, "the number of widths", n_widths, 1, MOST_WIDTHS))
        return stk_value_none(x.graph);
    int64_t times = INT64_C(1) << n_widths, h = layer.shape.dim[1], w = layer.shape.dim[2], c = layer.shape.dim[3];
    if (h % times || w % times)
        return stk_layer_fail(&layer, "images of %lld x %lld cannot be halved %d times", (long long)h, (long long)w,
                              n_widths);
    stk_scope_push(x.graph, "encoder");
    for (int i = 0; i < n_widths; i++)
        x = stk_relu(
            stk_conv2d_with(x, &(stk_conv2d_config){.filters = widths[i], .stride = 2, .init = STK_INIT_HE_NORMAL}));
    x = stk_dense(stk_flatten(x), code);
    stk_scope_pop(x.graph);
    stk_scope_push(x.graph, "decoder");
    int64_t last = widths[n_widths - 1];
    x = stk_relu(stk_dense(x, h / times * (w / times) * last));
    x = stk_reshape(x, STK_SHAPE(STK_ANY, h / times, w / times, last));
    for (int i = n_widths - 1; i >= 0; i--) {
        int64_t filters = i > 0 ? widths[i - 1] : c;
        x = stk_conv2d_transpose(x, filters, 2, 2);
        if (i > 0) x = stk_relu(x);
    }
    stk_scope_pop(x.graph);
    return x;
}

/* --- in a recipe --- */

static stk_status build(const stk_model_call *call, stk_value *out)
{
    int64_t widths[STK_MOST_WIDTHS];
    int n;
    STK_RETURN_IF_ERROR(stk_some_widths_of(call->settings, "widths", widths, &n));
    *out = stk_autoencoder(call->x, widths, n, stk_yaml_int(call->settings, "code", 32));
    return STK_OK;
}

static const stk_key keys[] = {
    STK_KEY_WIDTHS("widths", "[32, 64]", "Filters of each convolution, which halves the sides."),
    STK_KEY_NUMBER("code", "32", "Numbers in the middle."),
    {.name = NULL}};

const stk_model_class stk_model_class_autoencoder = {
    .key = {.name = "autoencoder",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "An image to itself, through a few numbers."},
    .target = "image",
    .build = build,
    .sample = {{.of = "28 x 28 x 1", .fields = "image: [28, 28, 1]", .rest = "loss: mse"}},
    .place = 110,
};

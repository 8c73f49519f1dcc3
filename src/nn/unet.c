/* U-Net: Ronneberger et al. 2015, with padding and batch norm, so that what comes out is as large as what goes in. */
#include <stdio.h>

#include "nn/model_list.h"
#include "stoker/nn/networks.h"

enum { MOST_DEPTHS = 8 };

/* Twice a 3x3 convolution, norm and ReLU: "<scope>.conv1", "bn1", "conv2", "bn2". */
static stk_value double_conv(stk_value x, const char *kind, int number, int64_t filters)
{
    static const char *const names[2][2] = {{"conv1", "bn1"}, {"conv2", "bn2"}};
    char scope[32];
    snprintf(scope, sizeof(scope), "%s%d", kind, number);
    stk_scope_push(x.graph, scope);
    for (int i = 0; i < 2; i++) {
        x = stk_conv2d_with(
            x, &(stk_conv2d_config){
                   .filters = filters, .no_bias = true, .init = STK_INIT_HE_NORMAL_FAN_OUT, .name = names[i][0]});
        x = stk_relu(stk_batch_norm_with(x, &(stk_batch_norm_config){.name = names[i][1]}));
    }
    stk_scope_pop(x.graph);
    return x;
}

static bool check(const stk_layer *layer, int n_widths)
{
    if (!stk_layer_need_space(layer, 2) ||
        !stk_layer_need_range(layer, "the number of widths", n_widths, 2, MOST_DEPTHS))
        return false;
    int64_t times = INT64_C(1) << (n_widths - 1);
    if (layer->shape.dim[1] % times == 0 && layer->shape.dim[2] % times == 0) return true;
    stk_layer_fail(layer, "images of %lld x %lld cannot be halved %d times", (long long)layer->shape.dim[1],
                   (long long)layer->shape.dim[2], n_widths - 1);
    return false;
}

stk_value stk_unet(stk_value x, const int64_t *widths, int n_widths, int64_t classes)
{
    stk_layer layer;
    stk_value skip[MOST_DEPTHS];
    if (!stk_layer_begin(&layer, x, "unet", NULL) || !check(&layer, n_widths)) return stk_value_none(x.graph);
    for (int i = 0; i < n_widths; i++) {
        if (i > 0) x = stk_max_pool(x, 2);
        skip[i] = x = double_conv(x, "down", i, widths[i]);
    }
    for (int i = n_widths - 2; i >= 0; i--) {
        char name[32];
        snprintf(name, sizeof(name), "up%d.conv_transpose", i);
        x = stk_conv2d_transpose_with(x,
                                      &(stk_conv2d_transpose_config){.filters = widths[i], .kernel = 2, .name = name});
        x = stk_concat((stk_value[]){skip[i], x}, 2, 3);
        x = double_conv(x, "up", i, widths[i]);
    }
    return stk_conv2d_with(x, &(stk_conv2d_config){.filters = classes, .kernel = 1, .name = "out"});
}

/* --- in a recipe --- */

static stk_status build(const stk_model_call *call, stk_value *out)
{
    int64_t widths[STK_MOST_WIDTHS];
    int n;
    STK_RETURN_IF_ERROR(stk_some_widths_of(call->settings, "widths", widths, &n));
    *out = stk_unet(call->x, widths, n, call->n_classes);
    return STK_OK;
}

static const stk_key keys[] = {
    STK_KEY_WIDTHS("widths", "[64, 128, 256, 512, 1024]", "Channels at each depth; sides are halved in between."),
    STK_KEY_CLASSES("the data"),
    {.name = NULL}};

const stk_model_class stk_model_class_unet = {
    .key = {.name = "unet",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "An image to a class for each pixel; Ronneberger et al. 2015."},
    .has_classes = true,
    .build = build,
    .sample = {{.name = "unet: {classes: 2}",
                .of = "256 x 256 x 3, a class a pixel",
                .fields = "image: [256, 256, 3], mask: {shape: [256, 256], below: 2}"}},
    .place = 100,
};

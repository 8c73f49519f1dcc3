/* MobileNetV2: Sandler et al. 2018. Names and initialisation are torchvision's: features.0.0, features.1.conv.0.0, ...,
 * classifier.1.
 */
#include <stdio.h>

#include "nn/model_list.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/networks.h"

/* "<prefix>.0" and "<prefix>.1": a convolution, by default over all channels, and its norm. */
static stk_value conv_norm(stk_value x, const char *prefix, int64_t filters, int kernel, int stride, int groups)
{
    char conv[48], norm[48];
    snprintf(conv, sizeof(conv), "%s.0", prefix);
    snprintf(norm, sizeof(norm), "%s.1", prefix);
    x = stk_conv2d_with(x, &(stk_conv2d_config){.filters = filters,
                                                .kernel = kernel,
                                                .stride = stride,
                                                .groups = groups,
                                                .no_bias = true,
                                                .init = STK_INIT_HE_NORMAL_FAN_OUT,
                                                .name = conv});
    return stk_relu6(stk_batch_norm_with(x, &(stk_batch_norm_config){.name = norm}));
}

/* To `expand` times the channels, a filter for each, and back without an activation; added to its input where shapes
 * allow. */
static stk_value bottleneck(stk_value x, int number, int64_t expand, int64_t filters, int stride)
{
    char scope[32], conv[16], norm[16], prefix[16];
    int at = 0;
    stk_shape shape = stk_value_shape(x);
    int64_t channels = shape.rank == 4 ? shape.dim[3] : 1;
    stk_value y = x;
    snprintf(scope, sizeof(scope), "features.%d", number);
    stk_scope_push(x.graph, scope);
    if (expand > 1) {
        snprintf(prefix, sizeof(prefix), "conv.%d", at++);
        y = conv_norm(y, prefix, channels * expand, 1, 1, 1);
    }
    snprintf(prefix, sizeof(prefix), "conv.%d", at++);
    y = conv_norm(y, prefix, channels * expand, 3, stride, (int)(channels * expand));
    snprintf(conv, sizeof(conv), "conv.%d", at++);
    snprintf(norm, sizeof(norm), "conv.%d", at);
    y = stk_conv2d_with(
        y, &(stk_conv2d_config){
               .filters = filters, .kernel = 1, .no_bias = true, .init = STK_INIT_HE_NORMAL_FAN_OUT, .name = conv});
    y = stk_batch_norm_with(y, &(stk_batch_norm_config){.name = norm});
    stk_scope_pop(x.graph);
    return stride == 1 && channels == filters ? stk_add(x, y) : y;
}

stk_value stk_mobilenet_v2(stk_value x, int64_t classes, stk_resnet_stem stem)
{
    static const struct {
        int64_t expand, filters;
        int repeat, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    bool small = stem == STK_STEM_CIFAR;
    int number = 1;
    x = conv_norm(x, "features.0", 32, 3, small ? 1 : 2, 1);
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
        for (int j = 0; j < stages[i].repeat; j++) {
            int stride = j > 0 || (small && i == 1) ? 1 : stages[i].stride;
            x = bottleneck(x, number++, stages[i].expand, stages[i].filters, stride);
        }
    x = stk_global_pool(conv_norm(x, "features.18", 1280, 1, 1, 1));
    return stk_dense_with(stk_dropout(x, 0.2),
                          &(stk_dense_config){.units = classes, .deviation = 0.01, .name = "classifier.1"});
}

/* --- in a recipe --- */

static stk_status build(const stk_model_call *call, stk_value *out)
{
    *out = stk_mobilenet_v2(call->x, call->n_classes, stk_stem_of(call->settings));
    return STK_OK;
}

static const stk_key keys[] = {
    STK_KEY_STEM("cifar: two strides fewer, for small images."), STK_KEY_CLASSES("the data"), {.name = NULL}};

const stk_model_class stk_model_class_mobilenet_v2 = {
    .key = {.name = "mobilenet_v2", .type = STK_KEY_MAP, .keys = keys, .no_short = true, .doc = "Sandler et al. 2018."},
    .has_classes = true,
    .is_published = true,
    .build = build,
    .sample = {STK_SAMPLE_PHOTOS},
    .place = 80,
};

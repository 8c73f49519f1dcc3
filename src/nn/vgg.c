/* VGG-16: Simonyan & Zisserman 2015. Names and initialisation are torchvision's: features.0, ..., classifier.6. */
#include <stdio.h>

#include "nn/model_list.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/networks.h"

static stk_value dense(stk_value x, int64_t units, const char *name)
{
    return stk_dense_with(x, &(stk_dense_config){.units = units, .deviation = 0.01, .name = name});
}

/* [N,7,7,512] as torchvision flattens it, channels first; other sizes by their mean. */
static stk_value flatten(stk_value x)
{
    stk_shape shape = stk_value_shape(x);
    if (shape.rank != 4 || shape.dim[1] != 7 || shape.dim[2] != 7) return stk_global_mean(x);
    return stk_flatten(stk_transpose(x, (int32_t[]){0, 3, 1, 2}));
}

stk_value stk_vgg16(stk_value x, int64_t hidden, int64_t classes)
{
    static const int64_t widths[] = {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
    int number = 0; /* of torchvision's list, in which ReLU and pooling count, too */
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        char name[32];
        snprintf(name, sizeof(name), "features.%d", number);
        number += widths[i] ? 2 : 1;
        if (widths[i] == 0) {
            x = stk_max_pool(x, 2);
            continue;
        }
        stk_conv2d_config conv = {.filters = widths[i], .init = STK_INIT_HE_NORMAL_FAN_OUT, .name = name};
        x = stk_relu(stk_conv2d_with(x, &conv));
    }
    x = stk_dropout(stk_relu(dense(flatten(x), hidden, "classifier.0")), 0.5);
    x = stk_dropout(stk_relu(dense(x, hidden, "classifier.3")), 0.5);
    return dense(x, classes, "classifier.6");
}

/* --- in a recipe --- */

static stk_status build(const stk_model_call *call, stk_value *out)
{
    *out = stk_vgg16(call->x, stk_yaml_int(call->settings, "hidden", 4096), call->n_classes);
    return STK_OK;
}

static const stk_key keys[] = {STK_KEY_NUMBER("hidden", "4096", "The width of the two dense layers before the last."),
                               STK_KEY_CLASSES("the data"),
                               {.name = NULL}};

const stk_model_class stk_model_class_vgg16 = {
    .key = {.name = "vgg16", .type = STK_KEY_MAP, .keys = keys, .no_short = true, .doc = "Simonyan & Zisserman 2015."},
    .has_classes = true,
    .is_published = true,
    .build = build,
    .sample = {STK_SAMPLE_PHOTOS},
    .place = 30,
};

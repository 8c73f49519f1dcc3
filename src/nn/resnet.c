/* ResNets: He et al. 2016, with the stride of a bottleneck in its 3x3 convolution (v1.5). The order, the names and the
 * initialisation are torchvision's, so that its weights can be taken over name by name: conv1, bn1, layer1.0.conv1,
 * ..., layer2.0.downsample.0, ..., fc.
 */
#include <stdio.h>

#include "base/error.h"
#include "nn/model_list.h"

typedef struct resnet_size {
    int depth; /* layers with weights */
    int n_blocks[4];
    bool bottleneck; /* 1x1, 3x3 and 1x1 to four times the width; else two 3x3 */
} resnet_size;

static const resnet_size sizes[] = {
    {18, {2, 2, 2, 2}, false}, {34, {3, 4, 6, 3}, false}, {50, {3, 4, 6, 3}, true}, {101, {3, 4, 23, 3}, true}};

/* Convolution without bias, padded to "same". */
static stk_value conv(stk_value x, const char *name, int64_t filters, int kernel, int stride)
{
    return stk_conv2d_with(x, &(stk_conv2d_config){.filters = filters,
                                                   .kernel = kernel,
                                                   .stride = stride,
                                                   .no_bias = true,
                                                   .init = STK_INIT_HE_NORMAL_FAN_OUT,
                                                   .name = name});
}

static stk_value norm(stk_value x, const char *name)
{
    return stk_batch_norm_with(x, &(stk_batch_norm_config){.name = name});
}

/* What is added to a block's convolutions: its input, or a 1x1 convolution of it where the shape changes. */
static stk_value shortcut(stk_value x, int64_t filters, int stride)
{
    stk_shape shape = stk_value_shape(x);
    bool changes = stride != 1 || shape.rank != 4 || shape.dim[3] != filters;
    return changes ? norm(conv(x, "downsample.0", filters, 1, stride), "downsample.1") : x;
}

static stk_value basic_block(stk_value x, int64_t width, int stride)
{
    stk_value y = stk_relu(norm(conv(x, "conv1", width, 3, stride), "bn1"));
    y = norm(conv(y, "conv2", width, 3, 1), "bn2");
    return stk_relu(stk_add(y, shortcut(x, width, stride)));
}

static stk_value bottleneck(stk_value x, int64_t width, int stride)
{
    stk_value y = stk_relu(norm(conv(x, "conv1", width, 1, 1), "bn1"));
    y = stk_relu(norm(conv(y, "conv2", width, 3, stride), "bn2"));
    y = norm(conv(y, "conv3", 4 * width, 1, 1), "bn3");
    return stk_relu(stk_add(y, shortcut(x, 4 * width, stride)));
}

static stk_value build(stk_value x, const resnet_size *size, int64_t classes, stk_resnet_stem stem)
{
    stk_graph *graph = x.graph;
    if (stem == STK_STEM_CIFAR) {
        x = stk_relu(norm(conv(x, "conv1", 64, 3, 1), "bn1"));
    } else {
        x = stk_relu(norm(conv(x, "conv1", 64, 7, 2), "bn1"));
        x = stk_max_pool_with(x, 3, 2, 1);
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < size->n_blocks[i]; j++) {
            char scope[32];
            snprintf(scope, sizeof(scope), "layer%d.%d", i + 1, j);
            stk_scope_push(graph, scope);
            int stride = i > 0 && j == 0 ? 2 : 1;
            x = size->bottleneck ? bottleneck(x, INT64_C(64) << i, stride) : basic_block(x, INT64_C(64) << i, stride);
            stk_scope_pop(graph);
        }
    }
    return stk_dense_with(stk_global_pool(x), &(stk_dense_config){.units = classes, .name = "fc"});
}

stk_value stk_resnet(stk_value x, int depth, int64_t classes, stk_resnet_stem stem)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (sizes[i].depth == depth) return build(x, &sizes[i], classes, stem);
    if (x.graph)
        stk_graph_keep_error(x.graph,
                             stk_fail(STK_INVALID, "there is no ResNet-%d here; there are 18, 34, 50 and 101", depth));
    return stk_value_none(x.graph);
}

stk_value stk_resnet18(stk_value x, int64_t classes, stk_resnet_stem stem)
{
    return stk_resnet(x, 18, classes, stem);
}

/* --- in a recipe --- */

static const stk_key keys[] = {STK_KEY_STEM("imagenet: 7x7 stride 2 and pooling; cifar: 3x3, for small images."),
                               STK_KEY_CLASSES("the folder of images"),
                               {.name = NULL}};

#define RESNET(depth, place_, text)                                                                                    \
    static stk_status build##depth(const stk_model_call *call, stk_value *out)                                         \
    {                                                                                                                  \
        *out = stk_resnet(call->x, depth, call->n_classes, stk_stem_of(call->settings));                               \
        return STK_OK;                                                                                                 \
    }                                                                                                                  \
    const stk_model_class stk_model_class_resnet##depth = {                                                            \
        .key = {.name = "resnet" #depth, .type = STK_KEY_MAP, .keys = keys, .no_short = true, .doc = text},            \
        .has_classes = true,                                                                                           \
        .is_published = true,                                                                                          \
        .build = build##depth,                                                                                         \
        .sample = {STK_SAMPLE_PHOTOS},                                                                                 \
        .place = place_,                                                                                               \
    };
RESNET(18, 40, "He et al. 2016.")
RESNET(34, 50, "He et al. 2016.")
RESNET(50, 60, "With bottlenecks, their stride in the 3x3 convolution (v1.5).")
RESNET(101, 70, "The same, deeper.")

/* ResNet-18: He et al. 2016. The order, the names and the initialisation are torchvision's, so that its weights can be
 * taken over name by name: conv1, bn1, layer1.0.conv1, ..., layer2.0.downsample.0, ..., fc.
 */
#include <stdio.h>

#include "nn/layer.h"

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

/* Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes. */
static stk_value basic_block(stk_value x, int64_t width, int stride)
{
    stk_shape shape = stk_value_shape(x);
    bool changes = stride != 1 || shape.rank != 4 || shape.dim[3] != width;
    stk_value y = stk_relu(norm(conv(x, "conv1", width, 3, stride), "bn1"));
    y = norm(conv(y, "conv2", width, 3, 1), "bn2");
    if (changes) x = norm(conv(x, "downsample.0", width, 1, stride), "downsample.1");
    return stk_relu(stk_add(y, x));
}

stk_value stk_resnet18(stk_value x, int64_t classes, stk_resnet_stem stem)
{
    stk_graph *graph = x.graph;
    if (stem == STK_STEM_CIFAR) {
        x = stk_relu(norm(conv(x, "conv1", 64, 3, 1), "bn1"));
    } else {
        x = stk_relu(norm(conv(x, "conv1", 64, 7, 2), "bn1"));
        x = stk_max_pool_with(x, 3, 2, 1);
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 2; j++) {
            char scope[32];
            snprintf(scope, sizeof(scope), "layer%d.%d", i + 1, j);
            stk_scope_push(graph, scope);
            x = basic_block(x, INT64_C(64) << i, i > 0 && j == 0 ? 2 : 1);
            stk_scope_pop(graph);
        }
    }
    return stk_dense_with(stk_global_pool(x), &(stk_dense_config){.units = classes, .name = "fc"});
}

/* A plain convolutional network. */
#include "nn/layer.h"

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

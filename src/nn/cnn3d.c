/* A small convolutional network for volumes and clips. */
#include "nn/layer.h"
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

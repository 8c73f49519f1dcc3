#include "ops/pool2d.h"

stk_status stk_pool2d_out(stk_tensor_desc x, const stk_window *window, stk_tensor_desc *y)
{
    STK_RETURN_IF_ERROR(stk_rule_need_rank("x", x, 4));
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (window->groups != 1)
        return stk_fail(STK_INVALID, "pooling has no groups, but the window has %d", window->groups);
    int64_t out[2];
    STK_RETURN_IF_ERROR(stk_rule_window_out(window, x.shape, out));
    for (int i = 0; i < 2; i++) {
        int reach = window->dilation[i] * (window->kernel[i] - 1) + 1;
        /* Else a window could lie outside the image. */
        if (window->pad_low[i] >= reach || window->pad_high[i] >= reach)
            return stk_fail(STK_INVALID, "padding %d and %d of the %s must be less than the window's %d pixels",
                            window->pad_low[i], window->pad_high[i], i ? "width" : "height", reach);
    }
    *y = stk_desc_make(x.dtype, STK_SHAPE(x.shape.dim[0], out[0], out[1], x.shape.dim[3]));
    return STK_OK;
}

#include "ops/pool2d.h"

static int dims_of(stk_op op)
{
    switch (op) {
    case STK_OP_max_pool3d:
    case STK_OP_max_pool3d_grad:
    case STK_OP_avg_pool3d:
    case STK_OP_avg_pool3d_grad: return 3;
    default: return 2;
    }
}

stk_status stk_pool_out(stk_op op, stk_tensor_desc x, const stk_window *window, stk_tensor_desc *y)
{
    int n_dims = dims_of(op);
    STK_RETURN_IF_ERROR(stk_rule_need_rank("x", x, n_dims + 2));
    STK_RETURN_IF_ERROR(stk_rule_need_float("x", x));
    if (window->groups != 1)
        return stk_fail(STK_INVALID, "pooling has no groups, but the window has %d", window->groups);
    int64_t out[3];
    STK_RETURN_IF_ERROR(stk_rule_window_out(window, x.shape, out));
    for (int i = 0; i < n_dims; i++) {
        int64_t reach = (int64_t)window->dilation[i] * (window->kernel[i] - 1) + 1;
        char text[STK_SHAPE_TEXT_BYTES];
        if (x.shape.dim[1 + i] == 0)
            return stk_fail(STK_INVALID, "the image %s has no pixels to be pooled", stk_shape_text(x.shape, text));
        /* Else a window could lie outside the image. */
        if (window->pad_low[i] >= reach || window->pad_high[i] >= reach)
            return stk_fail(STK_INVALID, "padding %d and %d of the %s must be less than the window's %lld pixels",
                            window->pad_low[i], window->pad_high[i], stk_rule_side(n_dims, i), (long long)reach);
    }
    *y = stk_desc_make(x.dtype, stk_rule_window_shape(x.shape, out, x.shape.dim[n_dims + 1]));
    return STK_OK;
}

/* Windows of convolution and pooling: sizes and text. */
#include "ops/rule.h"

stk_window stk_window_make(int32_t kernel_h, int32_t kernel_w)
{
    return (stk_window){.kernel = {kernel_h, kernel_w}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
}

static stk_status check_window(const stk_window *w)
{
    for (int i = 0; i < 2; i++) {
        const char *side = i ? "width" : "height";
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1)
            return stk_fail(STK_INVALID,
                            "the window's kernel %d, stride %d and dilation %d of the %s must be 1 or more",
                            w->kernel[i], w->stride[i], w->dilation[i], side);
        if (w->pad_low[i] < 0 || w->pad_high[i] < 0)
            return stk_fail(STK_INVALID, "the window's padding %d and %d of the %s must not be negative", w->pad_low[i],
                            w->pad_high[i], side);
    }
    if (w->groups < 1) return stk_fail(STK_INVALID, "the window's groups %d must be 1 or more", w->groups);
    return STK_OK;
}

stk_status stk_rule_window_out(const stk_window *window, stk_shape x, int64_t out[2])
{
    STK_RETURN_IF_ERROR(check_window(window));
    for (int i = 0; i < 2; i++) {
        char text[STK_SHAPE_TEXT_BYTES];
        const char *side = i ? "width" : "height";
        int64_t size = x.dim[1 + i];
        if (size == STK_ANY)
            return stk_fail(STK_INVALID, "the image %s must have a known %s", stk_shape_text(x, text), side);
        int64_t reach = (int64_t)window->dilation[i] * (window->kernel[i] - 1) + 1;
        int64_t padded = size + window->pad_low[i] + window->pad_high[i];
        if (padded < reach)
            return stk_fail(STK_INVALID,
                            "the window spans %lld pixels of the %s, but the image %s has %lld with padding",
                            (long long)reach, side, stk_shape_text(x, text), (long long)padded);
        out[i] = (padded - reach) / window->stride[i] + 1;
    }
    return STK_OK;
}

double stk_rule_window_taps(const stk_window *window)
{
    return (double)window->kernel[0] * window->kernel[1];
}

void stk_rule_print_window(const stk_attrs *attrs, stk_text *out)
{
    const stk_window *w = &attrs->window;
    stk_text_add(out, " kernel=%dx%d", w->kernel[0], w->kernel[1]);
    if (w->stride[0] != 1 || w->stride[1] != 1) stk_text_add(out, " stride=%dx%d", w->stride[0], w->stride[1]);
    if (w->pad_low[0] || w->pad_low[1] || w->pad_high[0] || w->pad_high[1])
        stk_text_add(out, " pad=%d:%d,%d:%d", w->pad_low[0], w->pad_high[0], w->pad_low[1], w->pad_high[1]);
    if (w->dilation[0] != 1 || w->dilation[1] != 1)
        stk_text_add(out, " dilation=%dx%d", w->dilation[0], w->dilation[1]);
    if (w->groups != 1) stk_text_add(out, " groups=%d", w->groups);
}

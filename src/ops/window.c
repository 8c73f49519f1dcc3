/* Windows of convolution and pooling, over images and volumes: sizes and text. */
#include "ops/rule.h"

stk_window stk_window_make(int32_t kernel_h, int32_t kernel_w)
{
    return (stk_window){.kernel = {kernel_h, kernel_w}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
}

stk_window stk_window_make_3d(int32_t kernel_d, int32_t kernel_h, int32_t kernel_w)
{
    return (stk_window){
        .kernel = {kernel_d, kernel_h, kernel_w}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}, .groups = 1};
}

const char *stk_rule_side(int n_dims, int i)
{
    static const char *const names[] = {"depth", "height", "width"};
    return names[i + 3 - n_dims];
}

int stk_rule_window_dims(const stk_window *window)
{
    return window->kernel[2] ? 3 : 2;
}

static stk_status check_window(const stk_window *w, int n_dims)
{
    if (n_dims == 2 && (w->kernel[2] || w->stride[2] || w->dilation[2] || w->pad_low[2] || w->pad_high[2]))
        return stk_fail(STK_INVALID, "the window has three sizes, but an image has height and width");
    for (int i = 0; i < n_dims; i++) {
        const char *side = stk_rule_side(n_dims, i);
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

stk_status stk_rule_window_out(const stk_window *window, stk_shape x, int64_t out[3])
{
    int n_dims = x.rank - 2;
    STK_RETURN_IF_ERROR(check_window(window, n_dims));
    for (int i = 0; i < n_dims; i++) {
        char text[STK_SHAPE_TEXT_BYTES];
        const char *side = stk_rule_side(n_dims, i);
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

stk_shape stk_rule_window_shape(stk_shape x, const int64_t out[3], int64_t channels)
{
    stk_shape y = x;
    for (int i = 0; i < x.rank - 2; i++)
        y.dim[1 + i] = out[i];
    y.dim[x.rank - 1] = channels;
    return y;
}

double stk_rule_window_taps(const stk_window *window)
{
    double n = 1;
    for (int i = 0; i < stk_rule_window_dims(window); i++)
        n *= window->kernel[i];
    return n;
}

/* " stride=2x2", unless all are `usual`. */
static void print_sizes(const char *name, const int32_t *sizes, int n_dims, int32_t usual, stk_text *out)
{
    bool is_usual = true;
    for (int i = 0; i < n_dims; i++)
        is_usual = is_usual && sizes[i] == usual;
    if (is_usual) return;
    stk_text_add(out, " %s=%d", name, sizes[0]);
    for (int i = 1; i < n_dims; i++)
        stk_text_add(out, "x%d", sizes[i]);
}

void stk_rule_print_window(const stk_attrs *attrs, stk_text *out)
{
    const stk_window *w = &attrs->window;
    int n_dims = stk_rule_window_dims(w);
    bool is_padded = false;
    print_sizes("kernel", w->kernel, n_dims, 0, out);
    print_sizes("stride", w->stride, n_dims, 1, out);
    for (int i = 0; i < n_dims; i++)
        is_padded = is_padded || w->pad_low[i] || w->pad_high[i];
    for (int i = 0; i < n_dims && is_padded; i++)
        stk_text_add(out, "%s%d:%d", i ? "," : " pad=", w->pad_low[i], w->pad_high[i]);
    print_sizes("dilation", w->dilation, n_dims, 1, out);
    if (w->groups != 1) stk_text_add(out, " groups=%d", w->groups);
}

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

/* --- compositions --- */

bool stk_pool_is_whole(const stk_window *window, stk_shape x)
{
    bool whole = true;
    for (int i = 0; i < x.rank - 2; i++)
        whole = whole && window->kernel[i] == x.dim[1 + i] && window->dilation[i] == 1 && !window->pad_low[i] &&
                !window->pad_high[i];
    return whole;
}

bool stk_pool_find_taps(const stk_window *window, stk_shape x, stk_shape y, stk_pool_taps *out)
{
    enum { MOST = 256 };
    *out = (stk_pool_taps){.window = *window, .x = x, .padded = x, .y = y, .n_dims = x.rank - 2};
    for (int i = 0; i < out->n_dims; i++)
        out->padded.dim[1 + i] += window->pad_low[i] + window->pad_high[i];
    double n_taps = stk_rule_window_taps(window);
    out->n_taps = n_taps <= MOST ? (int)n_taps : 0;
    return n_taps <= MOST;
}

stk_value stk_pool_pad(const stk_pool_taps *t, stk_value x, double value)
{
    int64_t low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    if (stk_shape_equal(t->x, t->padded)) return x;
    for (int i = 0; i < t->n_dims; i++) {
        low[1 + i] = t->window.pad_low[i];
        high[1 + i] = t->window.pad_high[i];
    }
    return stk_pad(x, low, high, value);
}

/* Where tap number i begins, and the last place that it sees. */
static stk_attrs range_of(const stk_pool_taps *t, int i)
{
    stk_attrs attrs = stk_attrs_zero();
    for (int k = 0; k < STK_MAX_RANK; k++) {
        attrs.slice.step[k] = k < t->x.rank;
        attrs.slice.stop[k] = k < t->x.rank ? INT64_MAX : 0;
    }
    for (int k = t->n_dims - 1; k >= 0; k--) {
        int64_t start = (int64_t)(i % t->window.kernel[k]) * t->window.dilation[k];
        attrs.slice.start[1 + k] = start;
        attrs.slice.step[1 + k] = t->window.stride[k];
        attrs.slice.stop[1 + k] = start + (t->y.dim[1 + k] - 1) * t->window.stride[k] + 1;
        i /= t->window.kernel[k];
    }
    return attrs;
}

stk_value stk_pool_take(const stk_pool_taps *t, stk_value padded, int i)
{
    stk_attrs attrs = range_of(t, i);
    return stk_slice(padded, attrs.slice.start, attrs.slice.stop, attrs.slice.step);
}

stk_value stk_pool_put(const stk_pool_taps *t, stk_value y, int i)
{
    stk_attrs attrs = range_of(t, i);
    attrs.shape = t->padded;
    return stk_rule_add(STK_OP_slice_grad, &attrs, &y, 1);
}

stk_value stk_pool_cut(const stk_pool_taps *t, stk_value padded)
{
    for (int i = 0; i < t->n_dims; i++)
        if (t->padded.dim[1 + i] != t->x.dim[1 + i])
            padded = stk_compose_cut(padded, 1 + i, t->window.pad_low[i], t->x.dim[1 + i]);
    return padded;
}

stk_value stk_pool_inside(const stk_pool_taps *t, stk_graph *graph, stk_dtype dtype)
{
    stk_shape shape = t->x;
    shape.dim[0] = shape.dim[shape.rank - 1] = 1;
    return stk_pool_pad(t, stk_graph_constant(graph, dtype, shape, 1), 0);
}

stk_value stk_pool_share(const stk_pool_taps *t, stk_graph *graph, stk_dtype dtype)
{
    if (stk_shape_equal(t->x, t->padded)) return stk_rule_scalar(graph, dtype, 1.0 / t->n_taps);
    stk_value inside = stk_pool_inside(t, graph, dtype), n = stk_pool_take(t, inside, 0);
    for (int i = 1; i < t->n_taps; i++)
        n = stk_add(n, stk_pool_take(t, inside, i));
    return stk_reciprocal(n);
}

/* Pooling and its gradients, window by window. */
#include <math.h>

#include "device/reference/reference.h"

/* The pixels of one window that lie inside the image, as offsets of channel 0 within x, row by row. */
typedef struct window_walk {
    const stk_window *window;
    stk_shape x, y;
    int64_t i_y; /* number of the output pixel, over all images */
    int32_t i_tap;
} window_walk;

static bool next_pixel(window_walk *walk, int64_t *i_x)
{
    const stk_window *w = walk->window;
    int64_t out_h = walk->y.dim[1], out_w = walk->y.dim[2], h = walk->x.dim[1], width = walk->x.dim[2];
    int64_t image = walk->i_y / (out_h * out_w), row = walk->i_y / out_w % out_h, col = walk->i_y % out_w;
    while (walk->i_tap < w->kernel[0] * w->kernel[1]) {
        int32_t kh = walk->i_tap / w->kernel[1], kw = walk->i_tap % w->kernel[1];
        int64_t in_row = row * w->stride[0] - w->pad_low[0] + (int64_t)kh * w->dilation[0];
        int64_t in_col = col * w->stride[1] - w->pad_low[1] + (int64_t)kw * w->dilation[1];
        walk->i_tap++;
        if (in_row < 0 || in_row >= h || in_col < 0 || in_col >= width) continue;
        *i_x = ((image * h + in_row) * width + in_col) * walk->x.dim[3];
        return true;
    }
    return false;
}

/* Where the first maximum of a window and channel lies in x, -1 for a window outside the image. NaN wins. */
static int64_t find_max(const stk_op_call *call, stk_shape y, int64_t i_y, int64_t c, const double *x)
{
    window_walk walk = {&call->attrs->window, call->in[0].shape, y, i_y, 0};
    int64_t i_x, best = -1;
    while (next_pixel(&walk, &i_x)) {
        double value = x[i_x + c];
        if (best < 0 || value > x[best] || (isnan(value) && !isnan(x[best]))) best = i_x + c;
    }
    return best;
}

static stk_status run_max(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape y = call->out[0].shape;
    int64_t n_pixels = stk_shape_product(y, 0, 3), n_channels = y.dim[3];
    for (int64_t i = 0; i < n_pixels; i++) {
        for (int64_t c = 0; c < n_channels; c++) {
            int64_t best = find_max(call, y, i, c, in[0]);
            out[0][i * n_channels + c] = best < 0 ? -INFINITY : in[0][best];
        }
    }
    return STK_OK;
}

static stk_status run_max_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape y = call->in[1].shape;
    int64_t n_pixels = stk_shape_product(y, 0, 3), n_channels = y.dim[3];
    for (int64_t i = 0, n = stk_shape_count(call->out[0].shape); i < n; i++)
        out[0][i] = 0;
    for (int64_t i = 0; i < n_pixels; i++) {
        for (int64_t c = 0; c < n_channels; c++) {
            int64_t best = find_max(call, y, i, c, in[0]);
            if (best >= 0) out[0][best] += in[2][i * n_channels + c];
        }
    }
    return STK_OK;
}

static int64_t count_pixels(window_walk walk)
{
    int64_t n = 0, i_x;
    while (next_pixel(&walk, &i_x))
        n++;
    return n;
}

static stk_status run_avg(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape y = call->out[0].shape;
    int64_t n_pixels = stk_shape_product(y, 0, 3), n_channels = y.dim[3];
    for (int64_t i = 0; i < n_pixels; i++) {
        for (int64_t c = 0; c < n_channels; c++) {
            window_walk walk = {&call->attrs->window, call->in[0].shape, y, i, 0};
            int64_t n = count_pixels(walk), i_x;
            double sum = 0;
            while (next_pixel(&walk, &i_x))
                sum += in[0][i_x + c];
            out[0][i * n_channels + c] = n ? sum / (double)n : 0;
        }
    }
    return STK_OK;
}

static stk_status run_avg_grad(const stk_op_call *call, const double *const *in, double *const *out)
{
    stk_shape y = call->in[0].shape;
    int64_t n_pixels = stk_shape_product(y, 0, 3), n_channels = y.dim[3];
    for (int64_t i = 0, n = stk_shape_count(call->out[0].shape); i < n; i++)
        out[0][i] = 0;
    for (int64_t i = 0; i < n_pixels; i++) {
        for (int64_t c = 0; c < n_channels; c++) {
            window_walk walk = {&call->attrs->window, call->out[0].shape, y, i, 0};
            int64_t n = count_pixels(walk), i_x;
            while (next_pixel(&walk, &i_x))
                out[0][i_x + c] += in[0][i * n_channels + c] / (double)n;
        }
    }
    return STK_OK;
}

stk_status stk_ref_max_pool2d_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_max, out);
}

stk_status stk_ref_max_pool2d_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_max_grad, out);
}

stk_status stk_ref_avg_pool2d_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_avg, out);
}

stk_status stk_ref_avg_pool2d_grad_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_avg_grad, out);
}

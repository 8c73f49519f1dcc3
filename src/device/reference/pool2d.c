/* Pooling and its gradients, window by window, in two and three dimensions. */
#include <math.h>

#include "device/reference/reference.h"
#include "device/reference/window.h"

/* The pixels of one window that lie inside the image, as offsets of channel 0 within x, row by row. */
typedef struct window_walk {
    stk_ref_window window;
    int64_t n_channels, i_y, i_tap;
} window_walk;

static window_walk walk_from(const stk_op_call *call, stk_shape x, stk_shape y, int64_t i_y)
{
    return (window_walk){stk_ref_window_make(&call->attrs->window, x, y), x.dim[x.rank - 1], i_y, 0};
}

static bool next_pixel(window_walk *walk, int64_t *i_x)
{
    while (walk->i_tap < walk->window.n_taps) {
        int64_t pixel = stk_ref_window_pixel(&walk->window, walk->i_y, walk->i_tap++);
        if (pixel < 0) continue;
        *i_x = pixel * walk->n_channels;
        return true;
    }
    return false;
}

/* Where the first maximum of a window and channel lies in x, -1 for a window outside the image. NaN wins. */
static int64_t find_max(const stk_op_call *call, stk_shape y, int64_t i_y, int64_t c, const double *x)
{
    window_walk walk = walk_from(call, call->in[0].shape, y, i_y);
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
    int64_t n_pixels = stk_shape_product(y, 0, y.rank - 1), n_channels = y.dim[y.rank - 1];
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
    int64_t n_pixels = stk_shape_product(y, 0, y.rank - 1), n_channels = y.dim[y.rank - 1];
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
    int64_t n_pixels = stk_shape_product(y, 0, y.rank - 1), n_channels = y.dim[y.rank - 1];
    for (int64_t i = 0; i < n_pixels; i++) {
        for (int64_t c = 0; c < n_channels; c++) {
            window_walk walk = walk_from(call, call->in[0].shape, y, i);
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
    int64_t n_pixels = stk_shape_product(y, 0, y.rank - 1), n_channels = y.dim[y.rank - 1];
    for (int64_t i = 0, n = stk_shape_count(call->out[0].shape); i < n; i++)
        out[0][i] = 0;
    for (int64_t i = 0; i < n_pixels; i++) {
        for (int64_t c = 0; c < n_channels; c++) {
            window_walk walk = walk_from(call, call->out[0].shape, y, i);
            int64_t n = count_pixels(walk), i_x;
            while (next_pixel(&walk, &i_x))
                out[0][i_x + c] += in[0][i * n_channels + c] / (double)n;
        }
    }
    return STK_OK;
}

#define X(name, body)                                                                                                  \
    stk_status stk_ref_##name##_kernel(const stk_op_call *call, stk_kernel *out)                                       \
    {                                                                                                                  \
        return stk_ref_make_wide(call, body, out);                                                                     \
    }
X(max_pool2d, run_max)
X(max_pool2d_grad, run_max_grad)
X(avg_pool2d, run_avg)
X(avg_pool2d_grad, run_avg_grad)
X(max_pool3d, run_max)
X(max_pool3d_grad, run_max_grad)
X(avg_pool3d, run_avg)
X(avg_pool3d_grad, run_avg_grad)
#undef X

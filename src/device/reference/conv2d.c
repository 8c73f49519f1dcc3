/* Convolution, with a bias for each channel and a ReLU, and its two gradients, in two and three dimensions. All three
 * visit the same triples (pixel of x, weight, pixel of y); they differ in which two are multiplied and where the
 * product is added.
 */
#include <string.h>

#include "device/reference/reference.h"
#include "device/reference/window.h"

typedef struct conv {
    stk_ref_window window;
    int64_t c, o, group_c, group_o; /* channels of x and y, and of a group */
} conv;

static conv conv_make(const stk_window *window, stk_shape x, stk_shape weight, stk_shape y)
{
    return (conv){
        .window = stk_ref_window_make(window, x, y),
        .c = x.dim[x.rank - 1],
        .o = y.dim[y.rank - 1],
        .group_c = weight.dim[weight.rank - 1],
        .group_o = y.dim[y.rank - 1] / window->groups,
    };
}

typedef enum conv_part { PART_DATA, PART_WEIGHT, PART_OUT } conv_part;

static void add_product_sum(double *y, const double *x, const double *weight, int64_t n)
{
    double sum = *y;
    for (int64_t c = 0; c < n; c++)
        sum += x[c] * weight[c];
    *y = sum;
}

static void add_multiple(double *y, double factor, const double *x, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        y[c] += factor * x[c];
}

/* For output channel i_o of the pixel at i_y: all input channels of its group under one tap. */
static void visit_channels(const conv *p, int64_t i_x, int64_t i_tap, int64_t i_y, conv_part target, double *x,
                           double *weight, double *y)
{
    for (int64_t o = 0; o < p->o; o++) {
        double *px = x + i_x * p->c + o / p->group_o * p->group_c;
        double *pw = weight + (o * p->window.n_taps + i_tap) * p->group_c;
        double *py = y + i_y * p->o + o;
        switch (target) {
        case PART_OUT: add_product_sum(py, px, pw, p->group_c); break;
        case PART_DATA: add_multiple(px, *py, pw, p->group_c); break;
        case PART_WEIGHT: add_multiple(pw, *py, px, p->group_c); break;
        }
    }
}

/* Adds into the target, which must hold zeros at first; the other two are read. */
static void visit(const conv *p, conv_part target, double *x, double *weight, double *y)
{
    for (int64_t i_y = 0; i_y < p->window.n_y; i_y++)
        for (int64_t i_tap = 0; i_tap < p->window.n_taps; i_tap++) {
            int64_t i_x = stk_ref_window_pixel(&p->window, i_y, i_tap);
            if (i_x >= 0) visit_channels(p, i_x, i_tap, i_y, target, x, weight, y);
        }
}

static void clear(double *x, stk_shape shape)
{
    for (int64_t i = 0, n = stk_shape_count(shape); i < n; i++)
        x[i] = 0;
}

/* A NaN stays one. */
static void cut_negative(double *x, stk_shape shape)
{
    for (int64_t i = 0, n = stk_shape_count(shape); i < n; i++)
        x[i] = x[i] <= 0 ? 0 : x[i];
}

/* Bias and activation of the results, whose last axis is `channels`. */
static void finish(const stk_op_call *call, const double *const *in, int64_t channels, double *out)
{
    if (call->n_in == 3)
        for (int64_t i = 0, n = stk_shape_count(call->out[0].shape); i < n; i++)
            out[i] += in[2][i % channels];
    if (call->attrs->activation == STK_ACTIVATION_RELU) cut_negative(out, call->out[0].shape);
}

static stk_status run_forward(const stk_op_call *call, const double *const *in, double *const *out)
{
    conv p = conv_make(&call->attrs->window, call->in[0].shape, call->in[1].shape, call->out[0].shape);
    clear(out[0], call->out[0].shape);
    visit(&p, PART_OUT, (double *)in[0], (double *)in[1], out[0]);
    finish(call, in, p.o, out[0]);
    return STK_OK;
}

static stk_status run_grad_data(const stk_op_call *call, const double *const *in, double *const *out)
{
    conv p = conv_make(&call->attrs->window, call->out[0].shape, call->in[1].shape, call->in[0].shape);
    clear(out[0], call->out[0].shape);
    visit(&p, PART_DATA, out[0], (double *)in[1], (double *)in[0]);
    finish(call, in, p.c, out[0]);
    return STK_OK;
}

static stk_status run_grad_weight(const stk_op_call *call, const double *const *in, double *const *out)
{
    conv p = conv_make(&call->attrs->window, call->in[0].shape, call->out[0].shape, call->in[1].shape);
    clear(out[0], call->out[0].shape);
    visit(&p, PART_WEIGHT, (double *)in[0], out[0], (double *)in[1]);
    return STK_OK;
}

#define X(name, body)                                                                                                  \
    stk_status stk_ref_##name##_kernel(const stk_op_call *call, stk_kernel *out)                                       \
    {                                                                                                                  \
        return stk_ref_make_wide(call, body, out);                                                                     \
    }
X(conv2d, run_forward)
X(conv2d_grad_data, run_grad_data)
X(conv2d_grad_weight, run_grad_weight)
X(conv3d, run_forward)
X(conv3d_grad_data, run_grad_data)
X(conv3d_grad_weight, run_grad_weight)
#undef X

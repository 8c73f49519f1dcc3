/* Convolution and its two gradients. All three visit the same triples (pixel of x, weight, pixel of y); they differ in
 * which two are multiplied and where the product is added.
 */
#include <string.h>

#include "device/reference/reference.h"

typedef struct conv {
    const stk_window *window;
    int64_t n, h, w, c, out_h, out_w, o; /* of x and y */
    int64_t group_c, group_o;            /* channels a group */
} conv;

static conv conv_make(const stk_window *window, stk_shape x, stk_shape weight, stk_shape y)
{
    return (conv){
        .window = window,
        .n = x.dim[0],
        .h = x.dim[1],
        .w = x.dim[2],
        .c = x.dim[3],
        .out_h = y.dim[1],
        .out_w = y.dim[2],
        .o = y.dim[3],
        .group_c = weight.dim[3],
        .group_o = y.dim[3] / window->groups,
    };
}

typedef enum conv_part { PART_DATA, PART_WEIGHT, PART_OUT } conv_part;

/* For output channel i_o of the pixel at i_y: all input channels of its group under one tap. */
static void visit_channels(const conv *p, int64_t i_x, int64_t i_tap, int64_t i_y, conv_part target, double *x,
                           double *weight, double *y)
{
    int64_t n_taps = (int64_t)p->window->kernel[0] * p->window->kernel[1];
    for (int64_t o = 0; o < p->o; o++) {
        double *px = x + i_x * p->c + o / p->group_o * p->group_c;
        double *pw = weight + (o * n_taps + i_tap) * p->group_c;
        double *py = y + i_y * p->o + o;
        for (int64_t c = 0; c < p->group_c; c++) {
            if (target == PART_OUT) *py += px[c] * pw[c];
            if (target == PART_DATA) px[c] += *py * pw[c];
            if (target == PART_WEIGHT) pw[c] += *py * px[c];
        }
    }
}

/* Adds into the target, which must hold zeros at first; the other two are read. */
static void visit(const conv *p, conv_part target, double *x, double *weight, double *y)
{
    const stk_window *w = p->window;
    for (int64_t i = 0; i < p->n * p->out_h * p->out_w; i++) {
        int64_t i_image = i / (p->out_h * p->out_w), row = i / p->out_w % p->out_h, col = i % p->out_w;
        for (int32_t kh = 0; kh < w->kernel[0]; kh++) {
            int64_t in_row = row * w->stride[0] - w->pad_low[0] + (int64_t)kh * w->dilation[0];
            if (in_row < 0 || in_row >= p->h) continue;
            for (int32_t kw = 0; kw < w->kernel[1]; kw++) {
                int64_t in_col = col * w->stride[1] - w->pad_low[1] + (int64_t)kw * w->dilation[1];
                if (in_col < 0 || in_col >= p->w) continue;
                int64_t i_x = (i_image * p->h + in_row) * p->w + in_col;
                visit_channels(p, i_x, (int64_t)kh * w->kernel[1] + kw, i, target, x, weight, y);
            }
        }
    }
}

static void clear(double *x, stk_shape shape)
{
    for (int64_t i = 0, n = stk_shape_count(shape); i < n; i++)
        x[i] = 0;
}

static stk_status run_forward(const stk_op_call *call, const double *const *in, double *const *out)
{
    conv p = conv_make(&call->attrs->window, call->in[0].shape, call->in[1].shape, call->out[0].shape);
    clear(out[0], call->out[0].shape);
    visit(&p, PART_OUT, (double *)in[0], (double *)in[1], out[0]);
    return STK_OK;
}

static stk_status run_grad_data(const stk_op_call *call, const double *const *in, double *const *out)
{
    conv p = conv_make(&call->attrs->window, call->out[0].shape, call->in[1].shape, call->in[0].shape);
    clear(out[0], call->out[0].shape);
    visit(&p, PART_DATA, out[0], (double *)in[1], (double *)in[0]);
    return STK_OK;
}

static stk_status run_grad_weight(const stk_op_call *call, const double *const *in, double *const *out)
{
    conv p = conv_make(&call->attrs->window, call->in[0].shape, call->out[0].shape, call->in[1].shape);
    clear(out[0], call->out[0].shape);
    visit(&p, PART_WEIGHT, (double *)in[0], out[0], (double *)in[1]);
    return STK_OK;
}

stk_status stk_ref_conv2d_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_forward, out);
}

stk_status stk_ref_conv2d_grad_data_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad_data, out);
}

stk_status stk_ref_conv2d_grad_weight_kernel(const stk_op_call *call, stk_kernel *out)
{
    return stk_ref_make_wide(call, run_grad_weight, out);
}

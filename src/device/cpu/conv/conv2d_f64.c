/* Convolutions and their gradients in f64, images and volumes, any stride, dilation and groups: plain loops that share
 * the outputs. No training runs in f64; networks in double that were made elsewhere do, and checks of gradients.
 */
#include "device/cpu/conv/conv2d_f64.h"

#include <string.h>

#include "device/cpu/conv/conv2d_shape.h"

typedef struct conv_axis {
    int64_t n_x, n_y, n_taps, stride, pad, dilation;
} conv_axis;

typedef struct conv_state {
    conv_axis axis[3]; /* depth, height, width; an image has depth 1 */
    stk_conv_pass pass;
    int64_t n_images, x_pixels, y_pixels, n_taps; /* pixels of an image */
    int64_t c, o, group_c, group_o;               /* channels of x and y, and of a group */
    int n_threads;
    bool has_bias, has_relu;
} conv_state;

/* The pixel of x under a tap, both in one image; -1: it lies outside. */
static int64_t find_pixel(const conv_state *s, int64_t i_y, int64_t i_tap)
{
    int64_t at[3];
    for (int i = 2; i >= 0; i--) {
        const conv_axis *a = &s->axis[i];
        at[i] = i_y % a->n_y * a->stride - a->pad + i_tap % a->n_taps * a->dilation;
        if (at[i] < 0 || at[i] >= a->n_x) return -1;
        i_y /= a->n_y;
        i_tap /= a->n_taps;
    }
    return (at[0] * s->axis[1].n_x + at[1]) * s->axis[2].n_x + at[2];
}

/* Bias and ReLU of n channels of a pixel. */
static void finish(const conv_state *s, const double *bias, int64_t n, double *y)
{
    for (int64_t i = 0; i < n; i++) {
        if (s->has_bias) y[i] += bias[i];
        if (s->has_relu && y[i] <= 0) y[i] = 0;
    }
}

/* Pixels [begin, end) of y, counted over all images. */
static void forward_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const double *x = task->args->in[0], *weight = task->args->in[1];
    int64_t begin, end;
    stk_cpu_share(s->n_images * s->y_pixels, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        double *y = (double *)task->args->out[0] + i * s->o;
        memset(y, 0, (size_t)s->o * sizeof(*y));
        for (int64_t i_tap = 0; i_tap < s->n_taps; i_tap++) {
            int64_t pixel = find_pixel(s, i % s->y_pixels, i_tap);
            if (pixel < 0) continue;
            const double *image = x + (i / s->y_pixels * s->x_pixels + pixel) * s->c;
            for (int64_t o = 0; o < s->o; o++) {
                const double *px = image + o / s->group_o * s->group_c,
                             *pw = weight + (o * s->n_taps + i_tap) * s->group_c;
                double sum = 0;
                for (int64_t c = 0; c < s->group_c; c++)
                    sum += px[c] * pw[c];
                y[o] += sum;
            }
        }
        finish(s, s->has_bias ? task->args->in[2] : NULL, s->o, y);
    }
}

/* A group of an image is one thread's, since the pixels of y add to the same pixels of x. */
static void add_to_image(const conv_state *s, const stk_kernel_args *args, int64_t n, int64_t group)
{
    const double *dy = (const double *)args->in[0] + n * s->y_pixels * s->o, *weight = args->in[1];
    double *dx = (double *)args->out[0] + n * s->x_pixels * s->c + group * s->group_c;
    for (int64_t i = 0; i < s->x_pixels; i++)
        memset(dx + i * s->c, 0, (size_t)s->group_c * sizeof(*dx));
    for (int64_t i_y = 0; i_y < s->y_pixels; i_y++)
        for (int64_t i_tap = 0; i_tap < s->n_taps; i_tap++) {
            int64_t pixel = find_pixel(s, i_y, i_tap);
            for (int64_t o = group * s->group_o; pixel >= 0 && o < (group + 1) * s->group_o; o++) {
                const double *pw = weight + (o * s->n_taps + i_tap) * s->group_c;
                double *px = dx + pixel * s->c, from = dy[i_y * s->o + o];
                for (int64_t c = 0; c < s->group_c; c++)
                    px[c] += from * pw[c];
            }
        }
    if (!s->has_bias && !s->has_relu) return;
    for (int64_t i = 0; i < s->x_pixels; i++)
        finish(s, s->has_bias ? (const double *)args->in[2] + group * s->group_c : NULL, s->group_c, dx + i * s->c);
}

static void data_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    int64_t begin, end, n_groups = s->o / s->group_o;
    stk_cpu_share(s->n_images * n_groups, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        add_to_image(s, task->args, i / n_groups, i % n_groups);
}

/* Taps of output channels: rows of group_c weights. */
static void weight_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const double *x = task->args->in[0], *dy = task->args->in[1];
    int64_t begin, end;
    stk_cpu_share(s->o * s->n_taps, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t o = i / s->n_taps;
        double *pw = (double *)task->args->out[0] + i * s->group_c;
        memset(pw, 0, (size_t)s->group_c * sizeof(*pw));
        for (int64_t i_y = 0; i_y < s->n_images * s->y_pixels; i_y++) {
            int64_t pixel = find_pixel(s, i_y % s->y_pixels, i % s->n_taps);
            if (pixel < 0) continue;
            const double *px = x + (i_y / s->y_pixels * s->x_pixels + pixel) * s->c + o / s->group_o * s->group_c;
            double from = dy[i_y * s->o + o];
            for (int64_t c = 0; c < s->group_c; c++)
                pw[c] += from * px[c];
        }
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    static void (*const shares[])(const void *, int, int) = {forward_share, data_share, weight_share};
    const conv_state *s = p;
    stk_cpu_parallel(s->n_threads, shares[s->pass], &(stk_cpu_task){s, args});
    return STK_OK;
}

bool stk_conv_f64_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    (void)device;
    return call->in[0].dtype == STK_F64;
}

stk_status stk_conv_f64_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_conv_shape whole = stk_conv_shape_of(call), *shape = &whole;
    const stk_window *w = &shape->window;
    int n_dims = shape->x.rank - 2;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(conv_state), run, out));
    conv_state *s = out->state;
    s->pass = shape->pass;
    s->has_bias = shape->has_bias;
    s->has_relu = shape->has_relu;
    s->n_images = shape->x.dim[0];
    s->x_pixels = s->y_pixels = s->n_taps = 1;
    for (int i = 0; i < 3; i++) {
        int k = i - (3 - n_dims);
        s->axis[i] = k < 0 ? (conv_axis){1, 1, 1, 1, 0, 1}
                           : (conv_axis){shape->x.dim[1 + k], shape->y.dim[1 + k], w->kernel[k],
                                         w->stride[k],        w->pad_low[k],       w->dilation[k]};
        s->x_pixels *= s->axis[i].n_x;
        s->y_pixels *= s->axis[i].n_y;
        s->n_taps *= s->axis[i].n_taps;
    }
    s->c = shape->x.dim[n_dims + 1];
    s->o = shape->y.dim[n_dims + 1];
    s->group_c = shape->weight.dim[n_dims + 1];
    s->group_o = s->o / w->groups;
    double work = (double)(s->n_images * s->y_pixels * s->n_taps) * (double)(s->o * s->group_c);
    s->n_threads = stk_cpu_threads_for(work, device->base.n_threads);
    return STK_OK;
}

/* Convolutions and their two gradients, of images and volumes: by the driver's library where it has one that makes them
 * as we do, else kernels/conv.dev, depthwise.dev. */
#include <stdio.h>

#include "base/error.h"
#include "device/gpu/ops/product.h"
#include "device/gpu/ops/reduce.h"

/* As volumes.h's struct. */
typedef struct volumes {
    gpu_divisor y_size[3], x_size[3], taps[3], stride[3];
    gpu_divisor x_channels, y_channels;
    int32_t pad[3], dilation[3];
    int32_t n_images, n_taps, all_x_channels, all_y_channels;
} volumes;

static volumes describe(const stk_window *window, stk_shape x, stk_shape weight, stk_shape y)
{
    volumes v = {.n_images = (int32_t)x.dim[0],
                 .n_taps = 1,
                 .all_x_channels = (int32_t)x.dim[x.rank - 1],
                 .all_y_channels = (int32_t)y.dim[y.rank - 1],
                 .x_channels = gpu_divide_by(weight.dim[weight.rank - 1]),
                 .y_channels = gpu_divide_by(y.dim[y.rank - 1] / window->groups)};
    for (int i = 0; i < 3; i++) {
        int k = i - (5 - x.rank);
        v.y_size[i] = gpu_divide_by(k < 0 ? 1 : y.dim[1 + k]);
        v.x_size[i] = gpu_divide_by(k < 0 ? 1 : x.dim[1 + k]);
        v.taps[i] = gpu_divide_by(k < 0 ? 1 : window->kernel[k]);
        v.stride[i] = gpu_divide_by(k < 0 ? 1 : window->stride[k]);
        v.pad[i] = k < 0 ? 0 : window->pad_low[k];
        v.dilation[i] = k < 0 ? 1 : window->dilation[k];
        v.n_taps *= v.taps[i].d;
    }
    return v;
}

/* --- groups of one channel --- */

static void add_depthwise(gpu_maker *m, const char *kernel)
{
    gpu_add(m, "depthwise.dev", kernel, "#define T %s\n#define FIRST_AXIS 0\n", gpu_type(m, m->call->in[0].dtype));
    gpu_in(m, 0);
    gpu_in(m, 1);
}

static void make_depthwise(gpu_maker *m, gpu_convolution_pass pass, const volumes *v, int64_t y_pixels)
{
    int64_t n = stk_shape_count(m->call->out[0].shape), n_each;
    bool has_bias = m->call->n_in == 3;
    if (pass != GPU_CONVOLUTION_GRAD_WEIGHT) {
        add_depthwise(m, pass == GPU_CONVOLUTION_FORWARD ? "depthwise" : "depthwise_grad_data");
        gpu_in(m, has_bias ? 2 : 0);
        gpu_out(m, 0);
        gpu_index(m, n);
        gpu_int(m, has_bias);
        gpu_int(m, m->call->attrs->activation == STK_ACTIVATION_RELU);
        gpu_bytes(m, v, sizeof(*v));
        gpu_items(m, n, 256);
        return;
    }
    int64_t n_groups = (v->all_y_channels + 31) / 32;
    int64_t n_parts = gpu_reduce_parts(n_groups * v->n_taps, y_pixels, 256, &n_each);
    size_t part = gpu_take(m, (size_t)(n_parts * n) * sizeof(float));
    add_depthwise(m, "depthwise_grad_weight");
    gpu_scratch(m, part);
    gpu_int(m, (int32_t)y_pixels);
    gpu_int(m, (int32_t)n_each);
    gpu_bytes(m, v, sizeof(*v));
    gpu_group(m, 32, 8, 1);
    gpu_groups(m, n_groups, n_parts, v->n_taps);
    gpu_join_parts(m, STK_REDUCE_SUM, part, n_parts, n, y_pixels, 0);
}

/* --- by the driver's library --- */

static gpu_library_convolution ask(const gpu_maker *m, gpu_convolution_pass pass, stk_shape x, stk_shape weight,
                                   stk_shape y)
{
    const stk_window *window = &m->call->attrs->window;
    gpu_library_convolution out = {.n_images = x.dim[0],
                                   .x_channels = x.dim[x.rank - 1],
                                   .y_channels = y.dim[y.rank - 1],
                                   .groups = window->groups,
                                   .pass = pass,
                                   .n_sides = x.rank - 2,
                                   .dtype = (int32_t)m->call->in[0].dtype,
                                   .dtype_out = (int32_t)m->call->out[0].dtype,
                                   .has_bias = m->call->n_in == 3,
                                   .relu = m->call->attrs->activation == STK_ACTIVATION_RELU,
                                   .tf32 = m->call->attrs->tf32 && m->call->in[0].dtype == STK_F32};
    for (int i = 0; i < out.n_sides; i++) {
        out.x_side[i] = x.dim[1 + i];
        out.y_side[i] = y.dim[1 + i];
        out.taps[i] = weight.dim[1 + i];
        out.stride[i] = window->stride[i];
        out.dilation[i] = window->dilation[i];
        out.pad_low[i] = window->pad_low[i];
        out.pad_high[i] = window->pad_high[i];
    }
    return out;
}

/* Sizes beyond 2^31 are what libraries of this kind seldom meet. */
static bool is_for_library(stk_shape shape)
{
    const int64_t n = stk_shape_count(shape);
    return n > 0 && n <= INT32_MAX;
}

/* False: by kernels of our own. */
static bool add_library(gpu_maker *m, gpu_convolution_pass pass, stk_shape x, stk_shape weight, stk_shape y)
{
    const gpu_driver *driver = m->device->driver;
    if (!driver->plan_convolution || !is_for_library(x) || !is_for_library(weight) || !is_for_library(y)) return false;
    gpu_library_convolution convolution = ask(m, pass, x, weight, y);
    stk_status status = driver->plan_convolution(m->device->context, &convolution);
    if (status != STK_UNSUPPORTED) gpu_fail(m, status);
    if (status != STK_OK) return false;
    size_t scratch = convolution.scratch_bytes ? gpu_take(m, convolution.scratch_bytes) : 0;
    gpu_add_convolution(m, &convolution);
    gpu_in(m, 0);
    gpu_in(m, 1);
    gpu_out(m, 0);
    gpu_in(m, convolution.has_bias ? 2 : 0);
    if (convolution.scratch_bytes)
        gpu_scratch(m, scratch);
    else
        gpu_in(m, 0);
    m->impl = driver->convolution_library;
    return true;
}

/* --- products --- */

/* A pixel of y is a product of the same pixel of x: what is convolved lies as matrices do. */
static bool is_plain(const volumes *v, const stk_window *window)
{
    bool plain = v->n_taps == 1 && window->groups == 1;
    for (int i = 0; i < 3; i++)
        plain = plain && v->stride[i].d == 1 && v->pad[i] == 0 && v->x_size[i].d == v->y_size[i].d;
    return plain;
}

static void set_sizes(gpu_product_call *call, gpu_convolution_pass pass, const volumes *v, int64_t x_pixels,
                      int64_t y_pixels)
{
    const int64_t c = v->x_channels.d, o = v->y_channels.d;
    if (pass == GPU_CONVOLUTION_FORWARD) {
        call->m = y_pixels;
        call->n = call->c_batch = call->bias_batch = o;
        call->k = v->n_taps * c;
        call->ldc = v->all_y_channels;
        call->a_along_k = call->b_along_k = true;
        call->a_run = call->b_run = c;
    } else if (pass == GPU_CONVOLUTION_GRAD_DATA) {
        call->m = x_pixels;
        call->n = call->c_batch = call->bias_batch = c;
        call->k = v->n_taps * o;
        call->ldc = v->all_x_channels;
        call->a_along_k = true;
        call->a_run = o;
        call->b_run = c;
    } else {
        call->m = o;
        call->n = call->ldc = v->n_taps * c;
        call->k = y_pixels;
        call->c_batch = o * v->n_taps * c;
        call->a_run = o;
        call->b_run = c;
    }
}

/* What is a product is left to the library for these. */
static void expect(gpu_maker *m, gpu_convolution_pass pass, stk_shape x, stk_shape weight, stk_shape y, bool is_product)
{
    if (is_product || !is_for_library(x) || !is_for_library(weight) || !is_for_library(y)) return;
    gpu_library_convolution convolution = ask(m, pass, x, weight, y);
    stk_status status = m->device->driver->expect_convolution(m->device->context, &convolution);
    if (status != STK_OK) gpu_fail(m, status);
}

/* As a product of matrices by a library, as a convolution by one, by our own kernels: the first that can. */
static void make(gpu_maker *m, gpu_convolution_pass pass, stk_shape x, stk_shape weight, stk_shape y)
{
    const stk_attrs *attrs = m->call->attrs;
    volumes v = describe(&attrs->window, x, weight, y);
    int64_t x_pixels = stk_shape_product(x, 0, x.rank - 1), y_pixels = stk_shape_product(y, 0, y.rank - 1);
    int64_t c = v.x_channels.d, o = v.y_channels.d;
    char settings[64];
    const bool is_depthwise = c == 1 && attrs->window.groups > 1;
    if (m->expects) {
        const bool is_product = is_plain(&v, &attrs->window) && attrs->activation == STK_ACTIVATION_NONE;
        expect(m, pass, x, weight, y, is_depthwise || is_product);
        return;
    }
    if (x_pixels > INT32_MAX - 1024 || y_pixels > INT32_MAX - 1024) {
        gpu_fail(m, stk_fail(STK_UNSUPPORTED, "'%s' of more than 2^31 pixels", stk_op_name(m->call->op)));
        return;
    }
    if (is_depthwise) {
        make_depthwise(m, pass, &v, y_pixels);
        return;
    }
    snprintf(settings, sizeof(settings), "#define PASS %d\n#define FIRST_AXIS %d\n", (int)pass, x.rank == 4);
    gpu_product_call call = {.file = "conv.dev",
                             .settings = settings,
                             .n_batch = attrs->window.groups,
                             .relu = attrs->activation == STK_ACTIVATION_RELU,
                             .i_a = pass == GPU_CONVOLUTION_GRAD_WEIGHT,
                             .i_b = pass != GPU_CONVOLUTION_GRAD_WEIGHT,
                             .operands = &v,
                             .operands_bytes = sizeof(v)};
    set_sizes(&call, pass, &v, x_pixels, y_pixels);
    gpu_matrices matrices = {.m = (int32_t)call.m,
                             .n = (int32_t)call.n,
                             .k = (int32_t)call.k,
                             .lda = (int32_t)(pass == GPU_CONVOLUTION_FORWARD ? c : o),
                             .ldb = (int32_t)c};
    if (is_plain(&v, &attrs->window)) call.matrices = &matrices;
    if (gpu_multiply_by_library(m, &call) || add_library(m, pass, x, weight, y)) return;
    gpu_multiply(m, &call);
}

static void make_forward(gpu_maker *m)
{
    make(m, GPU_CONVOLUTION_FORWARD, m->call->in[0].shape, m->call->in[1].shape, m->call->out[0].shape);
}

static void make_grad_data(gpu_maker *m)
{
    make(m, GPU_CONVOLUTION_GRAD_DATA, m->call->out[0].shape, m->call->in[1].shape, m->call->in[0].shape);
}

static void make_grad_weight(gpu_maker *m)
{
    make(m, GPU_CONVOLUTION_GRAD_WEIGHT, m->call->in[0].shape, m->call->out[0].shape, m->call->in[1].shape);
}

void gpu_make_conv2d(gpu_maker *m)
{
    make_forward(m);
}

void gpu_make_conv2d_grad_data(gpu_maker *m)
{
    make_grad_data(m);
}

void gpu_make_conv2d_grad_weight(gpu_maker *m)
{
    make_grad_weight(m);
}

void gpu_make_conv3d(gpu_maker *m)
{
    make_forward(m);
}

void gpu_make_conv3d_grad_data(gpu_maker *m)
{
    make_grad_data(m);
}

void gpu_make_conv3d_grad_weight(gpu_maker *m)
{
    make_grad_weight(m);
}

/* Convolution and its two gradients: 3x3 in tiles (conv2d_winograd.h), 1x1 as products (conv2d_point.h), own loops,
 * oneDNN for what they do not cover.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/conv/conv2d.h"
#include "device/cpu/conv/conv2d_f64.h"
#include "device/cpu/conv/conv2d_onednn.h"
#include "device/cpu/conv/conv2d_point.h"
#include "device/cpu/conv/conv2d_weight_pairs.h"
#include "device/cpu/conv/conv2d_weight_point.h"
#include "device/cpu/conv/conv2d_weight_product.h"
#include "device/cpu/conv/conv2d_winograd.h"
#include "device/cpu/conv/depthwise.h"
#include "device/cpu/cpu.h"
#include "device/cpu/element/element.h"
#include "device/cpu/matmul/matmul_onednn.h"

typedef struct conv_state {
    stk_isa isa;
    int n_threads;
    stk_conv_dense dense;   /* forward and gradient of data */
    stk_conv_weight weight; /* gradient of weights */
    stk_conv_point_cut cut; /* of weights of 1x1 */
    bool has_bias;
} conv_state;

/* What the own loops cover; oneDNN does the rest. With a few input channels, as colours are, the gradient of weights is
 * a matter of memory: tiles of a tap's channels would be too low. */
static bool is_own(const stk_conv_shape *s)
{
    const stk_window *w = &s->window;
    bool is_dilated = w->dilation[0] > 1 || w->dilation[1] > 1, is_strided = w->stride[0] > 1 || w->stride[1] > 1;
    if (w->groups > 1 || s->x.rank > 4) return false;
    switch (s->pass) {
    case STK_CONV_GRAD_DATA: return !is_dilated || !is_strided;
    case STK_CONV_GRAD_WEIGHT: return s->x.dim[3] >= 8;
    default: return true;
    }
}

static bool is_point(const stk_conv_shape *s)
{
    const stk_window *w = &s->window;
    return s->weight.dim[1] == 1 && s->weight.dim[2] == 1 && !w->pad_low[0] && !w->pad_low[1] && !w->pad_high[0] &&
           !w->pad_high[1];
}

/* Outputs need no memory of a part's own, so that there may be more parts than threads: the last ones even out. */
enum { PARTS_A_THREAD = 4 };

static void dense_pack_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    stk_conv_dense_of(s->isa)->pack_share(&s->dense, task->args->in[1], task->args->scratch, i_part, n_parts);
}

static void dense_run_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_dense_of(s->isa)->run_share(&s->dense, args->in[0], args->scratch, s->has_bias ? args->in[2] : NULL,
                                         args->out[0], i_part, n_parts);
}

static stk_status run_dense(const void *p, const stk_kernel_args *args)
{
    const conv_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->n_threads, dense_pack_share, &task);
    stk_cpu_parallel(s->n_threads == 1 ? 1 : s->n_threads * PARTS_A_THREAD, dense_run_share, &task);
    return STK_OK;
}

static void weight_clear_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    stk_conv_weight_of(s->isa)->clear_share(&s->weight, task->args->scratch, i_part, n_parts);
}

static void weight_run_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_weight_of(s->isa)->run_share(&s->weight, args->in[0], args->in[1], args->scratch, i_part, n_parts);
}

static void weight_finish_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    stk_conv_weight_of(s->isa)->finish_share(&s->weight, task->args->scratch, task->args->out[0], i_part, n_parts);
}

static stk_status run_weight(const void *p, const stk_kernel_args *args)
{
    const conv_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->n_threads, weight_clear_share, &task);
    stk_cpu_parallel(s->n_threads, weight_run_share, &task);
    stk_cpu_parallel(s->n_threads, weight_finish_share, &task);
    return STK_OK;
}

/* --- gradient of 1x1 weights --- */

static void point_run_share(const void *p, int i_part, int n_parts)
{
    (void)n_parts;
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_point_weight_of(s->isa)->run_share(&s->weight, s->cut, args->in[0], args->in[1], args->scratch, i_part);
}

static void point_finish_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const conv_state *s = task->state;
    const stk_kernel_args *args = task->args;
    stk_conv_point_weight_of(s->isa)->finish_share(&s->weight, s->cut, args->scratch, args->out[0], i_part, n_parts);
}

static stk_status run_point_weight(const void *p, const stk_kernel_args *args)
{
    const conv_state *s = p;
    stk_cpu_task task = {p, args};
    stk_cpu_parallel(s->cut.rows * s->cut.cols * s->cut.depth, point_run_share, &task);
    stk_cpu_parallel(s->n_threads, point_finish_share, &task);
    return STK_OK;
}

static bool is_large_part(const stk_conv_weight *w, stk_sgemm_grid grid)
{
    int64_t rows = w->c_out / grid.rows, cols = w->c_in / grid.cols;
    return rows >= 96 && cols >= 96 && rows * cols >= 96 * 256;
}

/* Threads share the pixels, each with sums of its own, where these are few. Where not, as many threads share the
 * weights as get enough of them each, and so many groups of threads the pixels. */
static stk_conv_point_cut cut_point(const stk_conv_weight *w, int n_threads)
{
    enum { MOST_SUMS = 5 << 19 }; /* bytes beside one thread's */
    int64_t n_pixels = w->n_images * w->out_h * w->out_w;
    stk_conv_point_cut cut = {1, 1, n_threads};
    bool has_few = (n_threads - 1) * w->c_out * w->c_in * (int64_t)sizeof(float) <= MOST_SUMS;
    for (int n = 2; n <= n_threads && !has_few; n++) {
        stk_sgemm_grid grid = stk_sgemm_cut(w->c_out, w->c_in, n);
        if (n_threads % n == 0 && is_large_part(w, grid))
            cut = (stk_conv_point_cut){grid.rows, grid.cols, n_threads / n};
    }
    if (n_pixels < cut.depth) cut.depth = 1;
    return cut;
}

static void release(void *p)
{
    conv_state *s = p;
    stk_conv_dense_free(&s->dense);
    stk_conv_weight_free(&s->weight);
    free(s);
}

static stk_status make_own(const stk_cpu_device *device, const stk_op_call *call, const stk_conv_shape *shape,
                           stk_kernel *out)
{
    bool is_weight = shape->pass == STK_CONV_GRAD_WEIGHT;
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(conv_state), is_weight ? run_weight : run_dense, out));
    conv_state *s = out->state;
    out->release = release;
    s->isa = device->isa;
    s->has_bias = shape->has_bias;
    s->n_threads = stk_op_cost(call).flops < 2.5e5 ? 1 : device->base.n_threads;
    if (is_weight) {
        STK_RETURN_IF_ERROR(stk_conv_plan_weight(shape, &s->weight));
        s->weight.dtype = call->in[0].dtype;
        if (is_point(shape)) {
            out->run = run_point_weight;
            s->cut = cut_point(&s->weight, s->n_threads);
            out->scratch_bytes = stk_conv_point_weight_of(s->isa)->scratch_bytes(&s->weight, s->cut);
            return STK_OK;
        }
        out->scratch_bytes = stk_conv_weight_of(s->isa)->scratch_bytes(&s->weight, s->n_threads);
    } else {
        STK_RETURN_IF_ERROR(stk_conv_plan_dense(shape, stk_conv_dense_of(s->isa)->depth, &s->dense));
        out->scratch_bytes = stk_conv_dense_of(s->isa)->scratch_bytes(&s->dense);
    }
    return STK_OK;
}

/* --- nothing to add up --- */

typedef struct empty_state {
    stk_element_fn round; /* of the bias; NULL: none */
    size_t bytes, pixel_bytes;
    int64_t n_channels;
    bool has_relu, is_f64;
} empty_state;

/* A bias of a pixel, rounded, and its ReLU. */
static void write_pixel(const empty_state *s, const void *bias, char *to)
{
    for (int64_t c = 0; c < s->n_channels; c++, to += s->pixel_bytes / (size_t)s->n_channels) {
        float narrow = s->is_f64 ? 0 : ((const float *)bias)[c];
        double wide = s->is_f64 ? ((const double *)bias)[c] : 0;
        if (s->has_relu && narrow <= 0) narrow = 0;
        if (s->has_relu && wide <= 0) wide = 0;
        const void *from = s->is_f64 ? (const void *)&wide : &narrow;
        s->round(1, to, &from);
    }
}

static stk_status run_empty(const void *p, const stk_kernel_args *args)
{
    const empty_state *s = p;
    if (!s->bytes) return STK_OK;
    memset(args->out[0], 0, s->bytes);
    if (!s->round) return STK_OK;
    write_pixel(s, args->in[2], args->out[0]);
    for (size_t at = s->pixel_bytes; at < s->bytes; at += s->pixel_bytes)
        memcpy((char *)args->out[0] + at, args->out[0], s->pixel_bytes);
    return STK_OK;
}

static stk_status make_empty(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(empty_state), run_empty, out));
    empty_state *s = out->state;
    stk_tensor_desc y = call->out[0];
    s->bytes = stk_desc_bytes(y);
    s->n_channels = y.shape.dim[y.shape.rank - 1];
    s->pixel_bytes = (size_t)s->n_channels * stk_dtype_bytes(y.dtype);
    s->has_relu = call->attrs->activation == STK_ACTIVATION_RELU;
    s->is_f64 = y.dtype == STK_F64;
    if (call->n_in == 3) s->round = stk_element_of(device->isa)->cast[call->in[2].dtype][y.dtype];
    return STK_OK;
}

/* --- all --- */

static void find_finish(const stk_op_call *call, stk_conv_shape *shape)
{
    shape->has_bias = call->n_in == 3;
    shape->has_relu = call->attrs->activation == STK_ACTIVATION_RELU;
}

static stk_conv_shape shape_of(const stk_op_call *call)
{
    stk_conv_shape shape = {.window = call->attrs->window};
    switch (call->op) {
    case STK_OP_conv2d_grad_data:
    case STK_OP_conv3d_grad_data:
        shape.pass = STK_CONV_GRAD_DATA;
        shape.x = call->out[0].shape, shape.weight = call->in[1].shape, shape.y = call->in[0].shape;
        find_finish(call, &shape);
        break;
    case STK_OP_conv2d_grad_weight:
    case STK_OP_conv3d_grad_weight:
        shape.pass = STK_CONV_GRAD_WEIGHT;
        shape.x = call->in[0].shape, shape.weight = call->out[0].shape, shape.y = call->in[1].shape;
        break;
    default:
        shape.pass = STK_CONV_FORWARD;
        shape.x = call->in[0].shape, shape.weight = call->in[1].shape, shape.y = call->out[0].shape;
        find_finish(call, &shape);
    }
    return shape;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_conv_shape shape = shape_of(call);
    if (!stk_shape_count(shape.x) || !stk_shape_count(shape.weight) || !stk_shape_count(shape.y))
        return make_empty(device, call, out);
    if (stk_cpu_is_depthwise(&shape)) return stk_cpu_depthwise_kernel(device, &shape, out);
    if (is_own(&shape)) return make_own(device, call, &shape, out);
    return stk_cpu_conv2d_onednn_kernel(device, &shape, STK_F32, out);
}

/* STK_UNSUPPORTED, and *out empty, where oneDNN has no such convolution, or for a depthwise one only what it does for
 * groups of any size, which took a hundred times as long for 960 channels. */
static stk_status make_onednn(const stk_cpu_device *device, const stk_conv_shape *shape, stk_dtype dtype,
                              stk_kernel *out)
{
    stk_status status = stk_cpu_conv2d_onednn_kernel(device, shape, dtype, out);
    if (status == STK_OK && stk_cpu_is_depthwise(shape) && !strstr(out->impl, "dw"))
        status = stk_fail(STK_UNSUPPORTED, "oneDNN has no depthwise convolution for this shape");
    if (status == STK_UNSUPPORTED) stk_kernel_free(out);
    return status;
}

/* Where the processor multiplies bf16. STK_UNSUPPORTED where oneDNN lacks the convolution, or is slower: each thread
 * has sums of its own for a gradient of weights, which costs more than the arithmetic where pixels are few. */
static stk_status make_bf16(const stk_cpu_device *device, const stk_conv_shape *shape, stk_kernel *out)
{
    enum { FEW = 64, FEW_IN_ALL = 8192 }; /* pixels of an image, and of all */
    int64_t pixels = shape->y.dim[1] * shape->y.dim[2];
    bool has_few = shape->y.rank == 4 && pixels <= FEW && shape->y.dim[0] * pixels <= FEW_IN_ALL;
    stk_status status = stk_cpu_conv2d_weight_pairs_kernel(device, shape, out);
    if (status != STK_UNSUPPORTED) return status;
    if (shape->pass == STK_CONV_GRAD_WEIGHT && has_few && stk_cpu_conv2d_is_winograd(shape)) return STK_UNSUPPORTED;
    status = stk_cpu_conv2d_weight_product_kernel(device, shape, out);
    if (status != STK_UNSUPPORTED) return status;
    return make_onednn(device, shape, STK_BF16, out);
}

/* --- f32 with AVX-512 --- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where oneDNN is faster in f32 with AVX-512, whose vectors are as long as a few channels (docs/kernels.md): our tiles
 * are 32 of them wide. */
static bool is_for_onednn(const stk_conv_shape *s)
{
    enum { A_VECTOR = 16, FEW = 32 };
    int64_t c = smaller(s->x.dim[3], s->y.dim[3]);
    if (s->x.rank != 4) return false;
    if (stk_cpu_is_depthwise(s)) return true;
    if (s->window.groups > 1) return false; /* It is oneDNN's in any case. */
    if (is_point(s)) return c <= FEW;
    if (s->pass == STK_CONV_GRAD_WEIGHT) return c <= FEW && !stk_cpu_conv2d_is_winograd(s);
    return c <= A_VECTOR;
}

/* STK_UNSUPPORTED where oneDNN has nothing fast. */
static stk_status make_f32_avx512(const stk_cpu_device *device, const stk_conv_shape *shape, stk_kernel *out)
{
    return is_for_onednn(shape) ? make_onednn(device, shape, STK_F32, out) : STK_UNSUPPORTED;
}

static stk_status choose(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    /* The weights are packed for each slice: so many pixels are worth it. */
    enum { LEAST_PIXELS = 768, WEIGHT_AND_BIAS = 1u << 1 | 1u << 2 };
    stk_dtype dtype = call->in[0].dtype;
    stk_conv_shape shape = shape_of(call);
    bool is_half = dtype == STK_BF16 || dtype == STK_F16, is_weight = shape.pass == STK_CONV_GRAD_WEIGHT;
    bool is_empty = !stk_shape_count(shape.x) || !stk_shape_count(shape.weight) || !stk_shape_count(shape.y);
    if (dtype == STK_F64)
        return is_empty ? make_empty(device, call, out) : stk_cpu_conv2d_f64_kernel(device, &shape, out);
    if (dtype == STK_BF16 && !is_empty && stk_isa_has_bf16(device->isa)) {
        stk_status status = make_bf16(device, &shape, out);
        if (status != STK_UNSUPPORTED) return status;
    }
    if (dtype == STK_F32 && !is_empty && device->isa == STK_ISA_AVX512) {
        stk_status status = make_f32_avx512(device, &shape, out);
        if (status != STK_UNSUPPORTED) return status;
    }
    if ((dtype == STK_F32 || is_half) && !is_empty) {
        if (stk_cpu_conv2d_is_winograd(&shape)) return stk_cpu_conv2d_winograd_kernel(device, &shape, dtype, out);
        if (stk_cpu_conv2d_is_point(device, &shape, dtype))
            return stk_cpu_conv2d_point_kernel(device, &shape, dtype, out);
    }
    if (dtype == STK_F32 || (is_half && (is_empty || (is_weight && is_own(&shape))))) return make(device, call, out);
    if (!is_half || !is_own(&shape)) return stk_cpu_widen_kernel(device, call, make, out);
    int64_t n_pixels = call->out[0].shape.dim[1] * call->out[0].shape.dim[2];
    return stk_cpu_slices_kernel(device, call, WEIGHT_AND_BIAS, (LEAST_PIXELS + n_pixels - 1) / n_pixels, make, out);
}

#define X(name)                                                                                                        \
    stk_status stk_cpu_##name##_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)         \
    {                                                                                                                  \
        return choose(device, call, out);                                                                              \
    }
X(conv2d)
X(conv2d_grad_data)
X(conv2d_grad_weight)
X(conv3d)
X(conv3d_grad_data)
X(conv3d_grad_weight)
#undef X

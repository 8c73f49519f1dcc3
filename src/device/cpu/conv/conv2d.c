/* Convolutions of images and volumes, and their gradients: the list of ways to compute them, best first. The figures
 * behind the order are in docs/kernels.md.
 */
#include "device/cpu/conv/conv2d_amx.h"
#include "device/cpu/conv/conv2d_empty.h"
#include "device/cpu/conv/conv2d_f64.h"
#include "device/cpu/conv/conv2d_onednn.h"
#include "device/cpu/conv/conv2d_own.h"
#include "device/cpu/conv/conv2d_point.h"
#include "device/cpu/conv/conv2d_product.h"
#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/conv/conv2d_weight_amx.h"
#include "device/cpu/conv/conv2d_weight_pairs.h"
#include "device/cpu/conv/conv2d_winograd.h"
#include "device/cpu/conv/depthwise.h"

/* --- 16-bit floats as f32 --- */

/* What their f32 are computed by. */
static const stk_cpu_impl in_f32[] = {
    {NULL, stk_conv_depthwise_supports, stk_conv_depthwise_make},
    {NULL, stk_conv_own_supports, stk_conv_own_make},
    {NULL, stk_conv_onednn_in_f32, stk_conv_onednn_make},
    {0},
};

static stk_status make_in_f32(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_make_first(device, call, in_f32, out);
}

static bool slices_support(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape shape = stk_conv_shape_of(call);
    return stk_cpu_has_half(device, call) && shape.pass != STK_CONV_GRAD_WEIGHT && stk_conv_own_covers(&shape);
}

static stk_status make_slices(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    /* The weights are packed for each slice: that many pixels are worth it. */
    enum { LEAST_PIXELS = 768, WEIGHT_AND_BIAS = 1u << 1 | 1u << 2 };
    int64_t n_pixels = call->out[0].shape.dim[1] * call->out[0].shape.dim[2];
    int64_t n_slice = (LEAST_PIXELS + n_pixels - 1) / n_pixels;
    return stk_cpu_slices_kernel(device, call, WEIGHT_AND_BIAS, n_slice, make_in_f32, out);
}

static stk_status make_widened(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return stk_cpu_widen_kernel(device, call, make_in_f32, out);
}

/* --- the list --- */

static const stk_cpu_impl impls[] = {
    /* Those below may count on elements. */
    {NULL, stk_conv_empty_supports, stk_conv_empty_make},
    /* f64 has this one alone. */
    {"plain f64", stk_conv_f64_supports, stk_conv_f64_make},
    /* bf16, where the processor multiplies tiles of it. */
    {NULL, stk_conv_amx_supports, stk_conv_amx_make},
    {NULL, stk_conv_weight_amx_supports, stk_conv_weight_amx_make},
    /* bf16, where the processor multiplies that: our gradients of weights are ahead of oneDNN's. */
    {"pairs of bf16", stk_conv_pairs_supports, stk_conv_pairs_make},
    {NULL, stk_conv_product_supports, stk_conv_product_make},
    {NULL, stk_conv_onednn_has_bf16, stk_conv_onednn_make},
    /* f32 of few channels with AVX-512, whose vectors our tiles do not fill. */
    {NULL, stk_conv_onednn_is_faster, stk_conv_onednn_make},
    /* f32 and 16-bit floats: fewer multiplications, then products. */
    {NULL, stk_conv_winograd_supports, stk_conv_winograd_make},
    {"onednn sgemm", stk_conv_point_supports, stk_conv_point_make},
    {NULL, stk_conv_depthwise_supports, stk_conv_depthwise_make},
    {NULL, stk_conv_own_supports, stk_conv_own_make},
    /* 16-bit floats without loops of their own: some images at a time, which stay in the cache, or all at once. */
    {NULL, slices_support, make_slices},
    {NULL, stk_cpu_has_half, make_widened},
    /* f32 of groups, volumes and the little else that is left. */
    {NULL, stk_conv_onednn_in_f32, stk_conv_onednn_make},
    {0},
};

/* What a family's table may choose for images: all that can, in no order. */
const stk_cpu_way stk_conv_ways[] = {
    {"tiles", {NULL, stk_conv_amx_supports, stk_conv_amx_make}},
    {"tiles", {NULL, stk_conv_weight_amx_supports, stk_conv_weight_amx_make}},
    {"pairs", {"pairs of bf16", stk_conv_pairs_supports, stk_conv_pairs_make}},
    {"product", {NULL, stk_conv_product_can, stk_conv_product_by_tiles_make}},
    {"onednn", {NULL, stk_conv_onednn_can_bf16, stk_conv_onednn_make}},
    {"onednn", {NULL, stk_conv_onednn_in_f32, stk_conv_onednn_make}},
    {"winograd", {NULL, stk_conv_winograd_supports, stk_conv_winograd_make}},
    {"winograd4", {NULL, stk_conv_winograd_4_can, stk_conv_winograd_4_make}},
    {"sgemm", {"onednn sgemm", stk_conv_point_can, stk_conv_point_make}},
    {"depthwise", {NULL, stk_conv_depthwise_supports, stk_conv_depthwise_make}},
    {"direct", {NULL, stk_conv_own_supports, stk_conv_own_make}},
    {"slices", {NULL, slices_support, make_slices}},
    {NULL, {0}},
};

static void find_finish(const stk_op_call *call, stk_conv_shape *shape)
{
    shape->has_bias = call->n_in == 3;
    shape->has_relu = call->attrs->activation == STK_ACTIVATION_RELU;
}

stk_conv_shape stk_conv_shape_of(const stk_op_call *call)
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

bool stk_conv_is_point(const stk_conv_shape *s)
{
    const stk_window *w = &s->window;
    return s->x.rank == 4 && w->groups == 1 && s->weight.dim[1] == 1 && s->weight.dim[2] == 1 && !w->pad_low[0] &&
           !w->pad_low[1] && !w->pad_high[0] && !w->pad_high[1];
}

#define X(name)                                                                                                        \
    stk_status stk_cpu_##name##_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)         \
    {                                                                                                                  \
        return stk_cpu_make_best(device, call, stk_conv_ways, impls, out);                                             \
    }
X(conv2d)
X(conv2d_grad_data)
X(conv2d_grad_weight)
X(conv3d)
X(conv3d_grad_data)
X(conv3d_grad_weight)
#undef X

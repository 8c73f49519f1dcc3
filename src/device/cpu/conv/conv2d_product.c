/* With pixels below each other, x [P,C], y [P,O] and weight [O,C]: y = x weight', dx = dy weight, dweight = dy' x. */
#include "device/cpu/conv/conv2d_product.h"

#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/matmul/product.h"
#include "device/cpu/matmul/tile_product.h"

static stk_product_shape product_of(const stk_conv_shape *s, stk_dtype in, stk_dtype out)
{
    int64_t o = s->weight.dim[0], c = s->weight.dim[3], n_pixels = stk_shape_product(s->y, 0, 3);
    stk_product_shape p = {.in = in, .out = out, .has_bias = s->has_bias};
    switch (s->pass) {
    case STK_CONV_GRAD_WEIGHT:
        p.m = o, p.n = c, p.k = n_pixels;
        p.transpose_a = true;
        p.a_step = o, p.b_step = c;
        break;
    case STK_CONV_GRAD_DATA:
        p.m = n_pixels, p.n = c, p.k = o;
        p.a_step = o, p.b_step = c;
        break;
    default:
        p.m = n_pixels, p.n = o, p.k = c;
        p.transpose_b = true;
        p.a_step = c, p.b_step = c;
    }
    p.c_step = p.n;
    return p;
}

/* Tiles of fewer channels have next to nothing to add up, or to fill. */
enum { LEAST_CHANNELS = 16 };

static bool is_product(const stk_cpu_device *device, const stk_op_call *call, const stk_conv_shape *s)
{
    bool is_f32 = call->in[0].dtype == STK_F32;
    if (!is_f32 && (call->in[0].dtype != STK_BF16 || !stk_isa_has_bf16(device->isa))) return false;
    if (call->out[0].dtype == STK_F16) return false;
    if (s->weight.dim[0] < LEAST_CHANNELS || s->weight.dim[3] < LEAST_CHANNELS) return false;
    return stk_conv_is_point(s) && s->window.stride[0] == 1 && s->window.stride[1] == 1;
}

/* Threads share the weights; where these are few, sharing the pixels is faster. */
bool stk_conv_product_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    enum { LEAST = 192 };
    stk_conv_shape s = stk_conv_shape_of(call);
    if (call->in[0].dtype != STK_BF16 || !is_product(device, call, &s) || s.pass != STK_CONV_GRAD_WEIGHT) return false;
    stk_product_shape p = product_of(&s, STK_BF16, STK_F32);
    return (p.m > p.n ? p.m : p.n) >= LEAST * device->base.n_threads && stk_product_pays(&p);
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, stk_product_way way, stk_kernel *out)
{
    stk_conv_shape s = stk_conv_shape_of(call);
    stk_product_shape p = product_of(&s, call->in[0].dtype, call->out[0].dtype);
    p.way = way;
    bool is_weight = s.pass == STK_CONV_GRAD_WEIGHT;
    STK_RETURN_IF_ERROR(stk_product_kernel(device, &p, is_weight, !is_weight, out));
    if (!is_weight) stk_product_kernel_keep_b(out);
    return STK_OK;
}

stk_status stk_conv_product_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call, STK_PRODUCT_BY_RULE, out);
}

bool stk_conv_product_can(const stk_cpu_device *device, const stk_op_call *call)
{
    stk_conv_shape s = stk_conv_shape_of(call);
    if (!is_product(device, call, &s) || s.has_relu || stk_shape_count(s.y) == 0) return false;
    stk_product_shape p = product_of(&s, call->in[0].dtype, call->out[0].dtype);
    return stk_tile_product_covers(device->isa, &p);
}

stk_status stk_conv_product_by_tiles_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    return make(device, call, STK_PRODUCT_BY_TILES, out);
}

/* With pixels below each other, x [P,C] and dy [P,O]: dweight [O,C] = dy' x. */
#include "device/cpu/conv/conv2d_weight_product.h"

#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/matmul/product.h"

static stk_product_shape product_of(const stk_conv_shape *s)
{
    int64_t o = s->weight.dim[0], c = s->weight.dim[3];
    stk_product_shape p = {.m = o, .n = c, .k = stk_shape_product(s->y, 0, 3), .in = STK_BF16, .out = STK_F32};
    p.transpose_a = true;
    p.a_step = o;
    p.b_step = p.c_step = c;
    return p;
}

/* Threads share the weights; where these are few, sharing the pixels is faster. */
bool stk_conv_product_supports(const stk_cpu_device *device, const stk_op_call *call)
{
    enum { LEAST = 192 };
    stk_conv_shape s = stk_conv_shape_of(call);
    if (call->in[0].dtype != STK_BF16 || !stk_isa_has_bf16(device->isa)) return false;
    if (s.pass != STK_CONV_GRAD_WEIGHT || !stk_conv_is_point(&s)) return false;
    if (s.window.stride[0] != 1 || s.window.stride[1] != 1) return false;
    stk_product_shape p = product_of(&s);
    return (p.m > p.n ? p.m : p.n) >= LEAST * device->base.n_threads && stk_product_pays(&p);
}

stk_status stk_conv_product_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_conv_shape s = stk_conv_shape_of(call);
    stk_product_shape p = product_of(&s);
    return stk_product_kernel(device, &p, 1, 0, out);
}

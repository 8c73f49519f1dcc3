/* With pixels below each other, x [P,C] and dy [P,O]: dweight [O,C] = dy' x. */
#include "device/cpu/conv/conv2d_weight_product.h"

#include "device/cpu/matmul/product.h"

/* Threads share the weights; where these are few, sharing the pixels is faster. */
static bool is_product(const stk_conv_shape *s, int n_threads)
{
    enum { LEAST = 192 };
    const stk_window *w = &s->window;
    bool is_point = s->x.rank == 4 && w->groups == 1 && s->weight.dim[1] == 1 && s->weight.dim[2] == 1 &&
                    w->stride[0] == 1 && w->stride[1] == 1 && !w->pad_low[0] && !w->pad_low[1] && !w->pad_high[0] &&
                    !w->pad_high[1];
    int64_t o = s->weight.dim[0], c = s->weight.dim[3];
    return s->pass == STK_CONV_GRAD_WEIGHT && is_point && (o > c ? o : c) >= LEAST * n_threads;
}

stk_status stk_cpu_conv2d_weight_product_kernel(const stk_cpu_device *device, const stk_conv_shape *s, stk_kernel *out)
{
    int64_t o = s->weight.dim[0], c = s->weight.dim[3];
    stk_product_shape p = {.m = o, .n = c, .k = stk_shape_product(s->y, 0, 3), .in = STK_BF16, .out = STK_F32};
    p.transpose_a = true;
    p.a_step = o;
    p.b_step = p.c_step = c;
    if (!is_product(s, device->base.n_threads) || !stk_product_pays(&p)) return STK_UNSUPPORTED;
    return stk_product_kernel(device, &p, 1, 0, out);
}

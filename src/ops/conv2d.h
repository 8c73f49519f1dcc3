/* What the rules of convolution share, in two and three dimensions: the check of an image x against a weight, the ops
 * that belong together, and the cost. An image below is a volume for the ops named conv3d.
 */
#ifndef STK_OPS_CONV2D_H
#define STK_OPS_CONV2D_H

#include "ops/compose.h"

/* x [N,H,W,C] and weight [O,KH,KW,C/groups] of equal float dtype -> *y [N,H',W',O]; op says how many dimensions. */
stk_status stk_conv_out(stk_op op, stk_tensor_desc x, stk_tensor_desc weight, const stk_window *window,
                        stk_tensor_desc *y);
/* 2 flops for each tap, input channel of the group and element of y. */
double stk_conv_flops(stk_shape y, stk_shape weight);

/* What conv and its transpose have in common that may take a bias of the result's channels and do an activation: a
 * check of how many inputs there are, and of the bias once out[0] is known; the gradient of the sum before the
 * activation, where the result tells what was positive; the bias's gradient, where it is asked for; and their cost. */
stk_status stk_conv_need_inputs(const stk_op_call *call);
stk_status stk_conv_need_bias(const stk_op_call *call);
stk_value stk_conv_grad_sum(const stk_grad_call *call);
stk_status stk_conv_grad_bias(const stk_grad_call *call, stk_value dy);
double stk_conv_finish_flops(const stk_op_call *call);

/* The window, and the activation where there is one. */
void stk_conv_print(const stk_attrs *attrs, stk_text *out);

/* The three convolutions of images x of that rank. Each is linear in both inputs, and the gradients of any are the
 * other two. Values as conv2d has them; attrs give the window. */
stk_value stk_conv_forward(const stk_attrs *attrs, stk_value x, stk_value weight);
stk_value stk_conv_grad_data(const stk_attrs *attrs, stk_value dy, stk_value weight, stk_shape x);
stk_value stk_conv_grad_weight(const stk_attrs *attrs, stk_value x, stk_value dy, stk_value weight);

/* A convolution of volumes as one of images for each depth of the kernel: the volumes padded in depth, and all depths
 * of all samples as images. */
typedef struct stk_conv_depths {
    stk_attrs attrs; /* of the images */
    stk_window window;
    stk_shape x, y, weight; /* of the volumes */
    int64_t padded;         /* depth */
} stk_conv_depths;
stk_conv_depths stk_conv_find_depths(const stk_attrs *attrs, stk_shape x, stk_shape weight, stk_shape y);
/* What depth number i of the kernel sees of padded x, as images; and the opposite, with zeros at all other places. */
stk_value stk_conv_take_depth(const stk_conv_depths *d, stk_value padded, int i);
stk_value stk_conv_put_depth(const stk_conv_depths *d, stk_value images, int i);
/* Zeros before and behind in depth, and without them. */
stk_value stk_conv_pad_depth(const stk_conv_depths *d, stk_value x);
stk_value stk_conv_cut_depth(const stk_conv_depths *d, stk_value padded);
/* Depth number i of the weight. */
stk_value stk_conv_weight_depth(const stk_conv_depths *d, stk_value weight, int i);
/* Volumes as images. */
stk_value stk_conv_as_images(stk_value volumes);
/* The bias and the activation that the call asks for. */
stk_value stk_conv_compose_finish(const stk_decompose_call *call, stk_value sum);

/* The rule of one of the six ops, with that number of inputs; decompose_ NULL: none. */
#define STK_CONV_RULE(name_, n_in_, decompose_)                                                                        \
    const stk_op_rule stk_rule_##name_ = {                                                                             \
        .name = #name_,                                                                                                \
        .kind = STK_KIND_OPAQUE,                                                                                       \
        .n_in = n_in_,                                                                                                 \
        .n_out = 1,                                                                                                    \
        .autocast = STK_AUTOCAST_NARROW,                                                                               \
        .infer = infer,                                                                                                \
        .grad = grad,                                                                                                  \
        .cost = cost,                                                                                                  \
        .print = stk_conv_print,                                                                                       \
        .decompose = decompose_,                                                                                       \
    }

#endif

/* What the three convolution rules share: the check of an image x against a weight, and the cost. */
#ifndef STK_OPS_CONV2D_H
#define STK_OPS_CONV2D_H

#include "ops/rule.h"

/* x [N,H,W,C] and weight [O,KH,KW,C/groups] of equal float dtype -> *y [N,H',W',O]. */
stk_status stk_conv2d_out(stk_tensor_desc x, stk_tensor_desc weight, const stk_window *window, stk_tensor_desc *y);
/* 2 flops for each tap, input channel of the group and element of y. */
double stk_conv2d_flops(stk_shape y, stk_shape weight);

#endif

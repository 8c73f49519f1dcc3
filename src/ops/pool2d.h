/* What the four pooling rules share. */
#ifndef STK_OPS_POOL2D_H
#define STK_OPS_POOL2D_H

#include "ops/rule.h"

/* x [N,H,W,C] float -> *y [N,H',W',C]. */
stk_status stk_pool2d_out(stk_tensor_desc x, const stk_window *window, stk_tensor_desc *y);

#endif

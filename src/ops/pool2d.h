/* What the rules of pooling share, in two and three dimensions. */
#ifndef STK_OPS_POOL2D_H
#define STK_OPS_POOL2D_H

#include "ops/rule.h"

/* x [N,H,W,C] float -> *y [N,H',W',C]; x [N,D,H,W,C] for the ops named pool3d. */
stk_status stk_pool_out(stk_op op, stk_tensor_desc x, const stk_window *window, stk_tensor_desc *y);

/* The rule of one of the eight ops; grad_ NULL: none. */
#define STK_POOL_RULE(name_, n_in_, grad_)                                                                             \
    const stk_op_rule stk_rule_##name_ = {                                                                             \
        .name = #name_,                                                                                                \
        .kind = STK_KIND_OPAQUE,                                                                                       \
        .n_in = n_in_,                                                                                                 \
        .n_out = 1,                                                                                                    \
        .autocast = STK_AUTOCAST_FOLLOW,                                                                               \
        .infer = infer,                                                                                                \
        .grad = grad_,                                                                                                 \
        .cost = cost,                                                                                                  \
        .print = stk_rule_print_window,                                                                                \
    }

#endif

/* What the rules of pooling share, in two and three dimensions. */
#ifndef STK_OPS_POOL2D_H
#define STK_OPS_POOL2D_H

#include "ops/compose.h"

/* x [N,H,W,C] float -> *y [N,H',W',C]; x [N,D,H,W,C] for the ops named pool3d. */
stk_status stk_pool_out(stk_op op, stk_tensor_desc x, const stk_window *window, stk_tensor_desc *y);

/* Pooling as compositions: a value for each tap of the window, which are few. */
typedef struct stk_pool_taps {
    stk_window window;
    stk_shape x, padded, y;
    int n_dims, n_taps;
} stk_pool_taps;

/* The one window that sees all of the image, and nothing else. */
bool stk_pool_is_whole(const stk_window *window, stk_shape x);
/* False where there are too many taps to have a value of each. */
bool stk_pool_find_taps(const stk_window *window, stk_shape x, stk_shape y, stk_pool_taps *out);
/* x with that value around it. */
stk_value stk_pool_pad(const stk_pool_taps *t, stk_value x, double value);
/* What tap number i of each window sees of padded x, shaped like y; and the opposite, zeros at all other places. */
stk_value stk_pool_take(const stk_pool_taps *t, stk_value padded, int i);
stk_value stk_pool_put(const stk_pool_taps *t, stk_value y, int i);
/* Padded x without what is around it. */
stk_value stk_pool_cut(const stk_pool_taps *t, stk_value padded);
/* 1 inside the image, 0 around it: of all samples and channels, [1,...,1], of that dtype, padded. */
stk_value stk_pool_inside(const stk_pool_taps *t, stk_graph *graph, stk_dtype dtype);
/* 1 / how many taps of each window are inside. */
stk_value stk_pool_share(const stk_pool_taps *t, stk_graph *graph, stk_dtype dtype);

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
        .decompose = decompose,                                                                                        \
    }

#endif

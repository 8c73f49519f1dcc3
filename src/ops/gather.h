/* What gather and scatter_add share. */
#ifndef STK_OPS_GATHER_H
#define STK_OPS_GATHER_H

#include "ops/rule.h"

/* The shape of x's elements at ids along the axis. role names x in errors. */
stk_status stk_gather_shape(const char *role, stk_shape x, stk_tensor_desc ids, int axis, stk_shape *y);

#endif

/* What products and convolutions share. */
#ifndef STK_DEVICE_PJRT_LOWER_PRODUCT_H
#define STK_DEVICE_PJRT_LOWER_PRODUCT_H

#include <stdio.h>

#include "device/pjrt/lowering.h"

/* Whether products of this call are of all bits of f32. */
bool pjrt_takes_all_bits(const stk_op_call *call);
/* y + bias along the last axis, in y's dtype. */
pjrt_value pjrt_add_bias(pjrt_module *m, pjrt_value y, pjrt_value bias);
/* In which products of that dtype sum up. */
stk_dtype pjrt_sum_dtype(stk_dtype dtype);

#endif

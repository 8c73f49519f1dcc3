/* A 1x1 convolution without stride and padding, and its gradients, as one product of bf16 or f32, by product.h. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_PRODUCT_H
#define STK_DEVICE_CPU_CONV_CONV2D_PRODUCT_H

#include "device/cpu/impl.h"

/* Where no other way is as fast on processors that multiply bf16: gradients of many weights. */
bool stk_conv_product_supports(const stk_cpu_device *device, const stk_op_call *call);
/* STK_UNSUPPORTED where oneDNN is held to less than the processor has. */
stk_status stk_conv_product_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
/* All passes, by own tiles (tile_product.h): for a family's table. */
bool stk_conv_product_can(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_product_by_tiles_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

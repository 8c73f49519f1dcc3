/* Gradient of a 1x1 convolution's weights as one product in 16 bits, by product.h. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_PRODUCT_H
#define STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_PRODUCT_H

#include "device/cpu/impl.h"

/* x and dy in bf16, which the processor multiplies, the gradient in f32: 1x1 without stride and padding, where no other
 * way is as fast. */
bool stk_conv_product_supports(const stk_cpu_device *device, const stk_op_call *call);
/* STK_UNSUPPORTED where oneDNN is held to less than the processor has. */
stk_status stk_conv_product_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

/* Gradient of a 1x1 convolution's weights as one product in 16 bits, by product.h. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_PRODUCT_H
#define STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_PRODUCT_H

#include "device/cpu/cpu.h"
#include "device/cpu/onednn/onednn.h"

/* x and dy in bf16, the gradient in f32. STK_UNSUPPORTED where the convolution is not 1x1 without stride and padding,
 * or another way is as fast. */
stk_status stk_cpu_conv2d_weight_product_kernel(const stk_cpu_device *device, const stk_conv_shape *shape,
                                                stk_kernel *out);

#endif

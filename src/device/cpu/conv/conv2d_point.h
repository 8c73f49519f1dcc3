/* 1x1 convolutions as products, by oneDNN's sgemm. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_POINT_H
#define STK_DEVICE_CPU_CONV_CONV2D_POINT_H

#include <stdbool.h>

#include "device/cpu/cpu.h"
#include "device/cpu/onednn/onednn.h"

/* Whether the convolution is one that the kernel below makes faster than the own loops: 1x1 without padding, in one
 * group, with enough pixels and channels; for the gradient of weights with few of these, no stride, and in f32. dtype:
 * F32, BF16 or F16. */
bool stk_cpu_conv2d_is_point(const stk_cpu_device *device, const stk_conv_shape *shape, stk_dtype dtype);
stk_status stk_cpu_conv2d_point_kernel(const stk_cpu_device *device, const stk_conv_shape *shape, stk_dtype dtype,
                                       stk_kernel *out);

#endif

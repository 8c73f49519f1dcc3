/* 1x1 convolutions as products, by oneDNN's sgemm. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_POINT_H
#define STK_DEVICE_CPU_CONV_CONV2D_POINT_H

#include "device/cpu/impl.h"

/* Where it is faster than the own loops, in f32 and 16-bit floats: 1x1 without padding, in one group, with enough
 * pixels and channels; for the gradient of weights with few of these, no stride, and in f32. */
bool stk_conv_point_supports(const stk_cpu_device *device, const stk_op_call *call);
/* The same, whatever the number of weights: for a family's table. */
bool stk_conv_point_can(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_point_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

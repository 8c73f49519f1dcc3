/* Convolutions by own loops: the dense ones of images, but for what oneDNN has to do. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_OWN_H
#define STK_DEVICE_CPU_CONV_CONV2D_OWN_H

#include "device/cpu/impl.h"
#include "device/cpu/onednn/onednn.h"

/* Whether there are loops for the shape, in f32. */
bool stk_conv_own_covers(const stk_conv_shape *shape);
/* In f32, or a gradient of weights of 16-bit floats. */
bool stk_conv_own_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_own_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

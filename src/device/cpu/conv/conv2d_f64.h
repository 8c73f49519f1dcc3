/* Convolutions in f64. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_F64_H
#define STK_DEVICE_CPU_CONV_CONV2D_F64_H

#include "device/cpu/cpu.h"
#include "device/cpu/onednn/onednn.h"

/* Of any shape that is not empty. */
stk_status stk_cpu_conv2d_f64_kernel(const stk_cpu_device *device, const stk_conv_shape *shape, stk_kernel *out);

#endif

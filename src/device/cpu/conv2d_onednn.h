/* Convolutions by oneDNN: those that own loops do not cover. */
#ifndef STK_DEVICE_CPU_CONV2D_ONEDNN_H
#define STK_DEVICE_CPU_CONV2D_ONEDNN_H

#include "device/cpu/cpu.h"
#include "device/cpu/onednn.h"

stk_status stk_cpu_conv2d_onednn_kernel(const stk_cpu_device *device, const stk_conv_shape *shape, stk_kernel *out);

#endif

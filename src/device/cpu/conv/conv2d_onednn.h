/* Convolutions by oneDNN: those that own loops do not cover, and all in bf16 where the processor multiplies that. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_ONEDNN_H
#define STK_DEVICE_CPU_CONV_CONV2D_ONEDNN_H

#include "device/cpu/cpu.h"
#include "device/cpu/onednn/onednn.h"

/* dtype: F32, or BF16 for all but gradients of weights, which are f32. */
stk_status stk_cpu_conv2d_onednn_kernel(const stk_cpu_device *device, const stk_conv_shape *shape, stk_dtype dtype,
                                        stk_kernel *out);

#endif

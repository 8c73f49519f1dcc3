/* Convolutions in f64. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_F64_H
#define STK_DEVICE_CPU_CONV_CONV2D_F64_H

#include "device/cpu/impl.h"

/* All in f64 that are not empty. */
bool stk_conv_f64_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_f64_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

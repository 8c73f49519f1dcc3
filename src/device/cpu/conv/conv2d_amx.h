/* Convolutions of bf16 and their gradients of data by tiles (AMX), images laid out as conv2d_amx_plan.h says. Padding
 * is made of zeros, so that an infinite weight makes NaN at borders where it would meet nothing. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_AMX_H
#define STK_DEVICE_CPU_CONV_CONV2D_AMX_H

#include "device/cpu/cpu.h"

bool stk_conv_amx_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_amx_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

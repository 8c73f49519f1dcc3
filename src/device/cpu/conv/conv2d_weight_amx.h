/* The gradient of a convolution's weights in bf16, by tiles (amx/amx.h). */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_AMX_H
#define STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_AMX_H

#include "device/cpu/impl.h"

/* Where there are tiles, of the processor or modelled; no groups and no dilation, and channels that are worth it. */
bool stk_conv_weight_amx_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_weight_amx_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

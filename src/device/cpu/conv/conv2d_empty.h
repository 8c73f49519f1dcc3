/* Convolutions of nothing, in any float dtype. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_EMPTY_H
#define STK_DEVICE_CPU_CONV_CONV2D_EMPTY_H

#include "device/cpu/impl.h"

/* Where one of the tensors has no elements. */
bool stk_conv_empty_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_empty_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

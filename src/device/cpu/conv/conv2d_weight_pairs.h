/* The gradient of a convolution's weights in bf16, by the processor's own products of pairs. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_PAIRS_H
#define STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_PAIRS_H

#include "device/cpu/impl.h"

/* Where the processor and the build have such products; no groups, no dilation, and channels that fill the tiles. */
bool stk_conv_pairs_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_pairs_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

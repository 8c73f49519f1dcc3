/* The gradient of max pooling in bf16. */
#ifndef STK_DEVICE_CPU_POOL_POOL2D_BF16_H
#define STK_DEVICE_CPU_POOL_POOL2D_BF16_H

#include "device/cpu/cpu.h"

/* STK_UNSUPPORTED, without a state, for volumes and where there is nothing to do. */
stk_status stk_cpu_max_pool_bf16_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

/* The gradient of max pooling in bf16. */
#ifndef STK_DEVICE_CPU_POOL_POOL2D_BF16_H
#define STK_DEVICE_CPU_POOL_POOL2D_BF16_H

#include "device/cpu/impl.h"

/* Of images, where there is something to do. */
bool stk_pool_bf16_grad_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_pool_bf16_grad_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

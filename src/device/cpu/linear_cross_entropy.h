/* linear_cross_entropy and its gradient in f64. */
#ifndef STK_DEVICE_CPU_LINEAR_CROSS_ENTROPY_F64_H
#define STK_DEVICE_CPU_LINEAR_CROSS_ENTROPY_F64_H

#include "device/cpu/cpu.h"

stk_status stk_cpu_linear_cross_entropy_f64_kernel(const stk_cpu_device *device, const stk_op_call *call,
                                                   stk_kernel *out);

#endif

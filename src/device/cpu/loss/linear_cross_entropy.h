/* What linear_cross_entropy.c and its way in f64 share. */
#ifndef STK_DEVICE_CPU_LOSS_LINEAR_CROSS_ENTROPY_H
#define STK_DEVICE_CPU_LOSS_LINEAR_CROSS_ENTROPY_H

#include "device/cpu/impl.h"

/* For linear_cross_entropy and linear_cross_entropy_grad in f64. */
bool stk_linear_f64_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_linear_f64_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
/* STK_CORRUPT where one of n labels is none of the classes, nor `ignored`. */
stk_status stk_linear_check_labels(const int32_t *labels, int64_t n, int64_t n_classes, int64_t ignored);

#endif

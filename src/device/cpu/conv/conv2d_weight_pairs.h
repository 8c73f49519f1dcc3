/* The gradient of a convolution's weights in bf16, by the processor's own products of pairs. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_PAIRS_H
#define STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_PAIRS_H

#include "device/cpu/cpu.h"
#include "device/cpu/onednn/onednn.h"

/* STK_UNSUPPORTED where the processor or the build has no such products, for other passes, for groups and dilation, and
 * for channels that do not fill the tiles. */
stk_status stk_cpu_conv2d_weight_pairs_kernel(const stk_cpu_device *device, const stk_conv_shape *shape,
                                              stk_kernel *out);

#endif

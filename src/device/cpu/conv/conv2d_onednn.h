/* Convolutions by oneDNN: those that own loops do not cover or do worse. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_ONEDNN_H
#define STK_DEVICE_CPU_CONV_CONV2D_ONEDNN_H

#include "device/cpu/conv/conv2d_shape.h"

/* Where it is for bf16, whose products the processor has. */
bool stk_conv_onednn_has_bf16(const stk_cpu_device *device, const stk_op_call *call);
/* All in bf16 there, whatever is faster. */
bool stk_conv_onednn_can_bf16(const stk_cpu_device *device, const stk_op_call *call);
/* Where it is faster in f32 than what we have. */
bool stk_conv_onednn_is_faster(const stk_cpu_device *device, const stk_op_call *call);
/* What oneDNN must not be given: its gradient of 1x1 weights in f32 with a stride of 2 (2.6) writes behind its scratch
 * memory where the channels do not fill a vector and the side is even, as of 8 and 22 channels on 82 x 82 pixels, with
 * AVX-512 and with AVX2. */
bool stk_conv_onednn_overruns(const stk_conv_shape *shape);
/* All others in f32. */
bool stk_conv_onednn_in_f32(const stk_cpu_device *device, const stk_op_call *call);
/* In the dtype of the first input, f32 or bf16; not empty. STK_UNSUPPORTED where oneDNN has no such convolution, or for
 * a depthwise one only what it does for groups of any size, which took a hundred times as long for 960 channels. */
stk_status stk_conv_onednn_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

/* What is done to a convolution's sums while they are in the cache: a bias for each channel, and ReLU. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_FINISH_H
#define STK_DEVICE_CPU_CONV_CONV2D_FINISH_H

#include <stdint.h>

#include "device/cpu/onednn/onednn.h"
#include "device/cpu/simd/isa.h"

typedef struct stk_conv_finish_fns {
    /* y [n_pixels, n_channels]; bias [n_channels], or NULL: none. */
    void (*rows)(int64_t n_pixels, int64_t n_channels, float *y, const float *bias, bool has_relu);
    /* The same in bf16: numbers that were rounded are rounded again. */
    void (*rows_bf16)(int64_t n_pixels, int64_t n_channels, uint16_t *y, const float *bias, bool has_relu);
    /* ReLU of n numbers of bf16; a NaN stays one. */
    void (*relu_bf16)(int64_t n, uint16_t *y);
} stk_conv_finish_fns;

STK_ISA_TABLE(stk_conv_finish_fns, stk_conv_finish)

static inline bool stk_conv_has_finish(const stk_conv_shape *shape)
{
    return shape->has_bias || shape->has_relu;
}

#endif

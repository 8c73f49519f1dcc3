/* Depthwise convolution of images, one filter a channel (groups = channels in = channels out), and its gradients. */
#ifndef STK_DEVICE_CPU_CONV_DEPTHWISE_H
#define STK_DEVICE_CPU_CONV_DEPTHWISE_H

#include "device/cpu/impl.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/simd/isa.h"

/* A tap inside the image: where its pixel's channels begin, and its row of the packed weights; in elements. */
typedef struct stk_depthwise_tap {
    int64_t x, weight;
} stk_depthwise_tap;

typedef struct stk_depthwise_fns {
    /* y[c] = sum over taps of x[tap.x + c] * weights[tap.weight + c]. */
    void (*pixel)(int64_t n_channels, const stk_depthwise_tap *taps, int64_t n_taps, const float *x,
                  const float *weights, float *y);
    /* sums[c] += sum over n pixels of x[i * x_step + c] * dy[i * n_channels + c]. */
    void (*row)(int64_t n_channels, int64_t n, const float *x, int64_t x_step, const float *dy, float *sums);
} stk_depthwise_fns;

STK_ISA_TABLE(stk_depthwise_fns, stk_depthwise)

bool stk_conv_is_depthwise(const stk_conv_shape *shape);
/* All of them in f32. */
bool stk_conv_depthwise_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_conv_depthwise_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

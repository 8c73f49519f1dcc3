/* Gradient of a 1x1 convolution's weights: grad_weight [O,C] = grad_dst [pixels,O], transposed, times x [pixels,C]. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_POINT_H
#define STK_DEVICE_CPU_CONV_CONV2D_WEIGHT_POINT_H

#include "device/cpu/conv/conv2d_plan.h"
#include "device/cpu/simd/isa.h"

/* Parts: rows by cols of them share the weights, and `depth` of them the pixels, each with its own sums. There are
 * `depth` pixels or more. */
typedef struct stk_conv_point_cut {
    int rows, cols, depth;
} stk_conv_point_cut;

typedef struct stk_conv_point_weight_fns {
    size_t (*scratch_bytes)(const stk_conv_weight *plan, stk_conv_point_cut cut);
    /* Two calls of parallel.h: sums, by as many parts as the cut has, then grad_weight, by any number. */
    void (*run_share)(const stk_conv_weight *plan, stk_conv_point_cut cut, const void *x, const void *grad_dst,
                      void *scratch, int i_part);
    void (*finish_share)(const stk_conv_weight *plan, stk_conv_point_cut cut, const void *scratch, float *grad_weight,
                         int i_part, int n_parts);
} stk_conv_point_weight_fns;

STK_ISA_TABLE(stk_conv_point_weight_fns, stk_conv_point_weight)

#endif

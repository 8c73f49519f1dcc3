/* Own f32 convolution loops. The plans are made once for a shape; a run gets the tensors and scratch memory. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_H
#define STK_DEVICE_CPU_CONV_CONV2D_H

#include "device/cpu/conv/conv2d_plan.h"
#include "device/cpu/simd/isa.h"

typedef struct stk_conv_dense_fns {
    int64_t depth; /* for stk_conv_plan_dense */
    size_t (*scratch_bytes)(const stk_conv_dense *plan);
    /* Two calls of parallel.h, one after the other: the weights into scratch, then all outputs. x, weight and y as the
     * pass has them: for the gradient of data x is grad_dst and y is grad_src. bias NULL: none. */
    void (*pack_share)(const stk_conv_dense *plan, const float *weight, void *scratch, int i_part, int n_parts);
    void (*run_share)(const stk_conv_dense *plan, const float *x, const void *scratch, const float *bias, float *y,
                      int i_part, int n_parts);
} stk_conv_dense_fns;

typedef struct stk_conv_weight_fns {
    size_t (*scratch_bytes)(const stk_conv_weight *plan, int n_parts);
    /* Three calls: sums to zero, x [N,H,W,C] and grad_dst [N,H',W',O] into sums, sums into grad_weight [O,KH,KW,C]. */
    void (*clear_share)(const stk_conv_weight *plan, void *scratch, int i_part, int n_parts);
    void (*run_share)(const stk_conv_weight *plan, const void *x, const void *grad_dst, void *scratch, int i_part,
                      int n_parts);
    void (*finish_share)(const stk_conv_weight *plan, void *scratch, float *grad_weight, int i_part, int n_parts);
} stk_conv_weight_fns;

STK_ISA_TABLE(stk_conv_dense_fns, stk_conv_dense)
STK_ISA_TABLE(stk_conv_weight_fns, stk_conv_weight)

#endif

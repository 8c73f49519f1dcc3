/* Own f32 convolution loops. The plans are made once for a shape; a run gets the tensors and scratch memory. */
#ifndef STK_DEVICE_CPU_CONV2D_H
#define STK_DEVICE_CPU_CONV2D_H

#include "device/cpu/conv2d_plan.h"
#include "device/cpu/isa.h"

typedef struct stk_conv_dense_fns {
    int64_t depth; /* for stk_conv_plan_dense */
    size_t (*scratch_bytes)(const stk_conv_dense *plan);
    /* What one of n_threads does; all of them take part, since there is a barrier inside. x, weight and y as the pass
     * has them: for the gradient of data x is grad_dst and y is grad_src. */
    void (*run)(const stk_conv_dense *plan, const float *x, const float *weight, float *y, void *scratch, int i_thread,
                int n_threads);
} stk_conv_dense_fns;

typedef struct stk_conv_weight_fns {
    size_t (*scratch_bytes)(const stk_conv_weight *plan, int n_threads);
    /* x [N,H,W,C], grad_dst [N,H',W',O] -> grad_weight [O,KH,KW,C]; threads as above. */
    void (*run)(const stk_conv_weight *plan, const float *x, const float *grad_dst, float *grad_weight, void *scratch,
                int i_thread, int n_threads);
} stk_conv_weight_fns;

STK_ISA_TABLE(stk_conv_dense_fns, stk_conv_dense)
STK_ISA_TABLE(stk_conv_weight_fns, stk_conv_weight)

#endif

/* Rows of softmax, cross-entropy and in_top_k: n elements side by side for each row. */
#ifndef STK_DEVICE_CPU_LOSS_SOFTMAX_H
#define STK_DEVICE_CPU_LOSS_SOFTMAX_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

enum { STK_FEW_CLASSES = 64 };

typedef struct stk_softmax_fns {
    void (*softmax)(int64_t n, const void *x, void *y);
    void (*softmax_grad)(int64_t n, const void *y, const void *dy, void *dx);
    /* label >= 0, or shares [n] where it is -1. */
    void (*loss)(int64_t n, const void *x, int64_t label, const void *shares, double smoothing, void *loss);
    void (*loss_grad)(int64_t n, const void *x, int64_t label, const void *shares, double smoothing, const void *dloss,
                      void *dx);
    /* Both, for label >= 0. dx may be x. */
    void (*loss_and_grad)(int64_t n, const void *x, int64_t label, double smoothing, const void *dloss, void *loss,
                          void *dx);
    /* The same for n_rows rows of n <= STK_FEW_CLASSES classes with class numbers as labels. dx may be x. */
    void (*few_loss)(int64_t n_rows, int64_t n, const void *x, const int32_t *labels, double smoothing, void *loss);
    void (*few_loss_grad)(int64_t n_rows, int64_t n, const void *x, const int32_t *labels, double smoothing,
                          const void *dloss, void *dx);
    void (*few_in_top_k)(int64_t n_rows, int64_t n, const void *x, const int32_t *labels, int k, float *out);
    void (*in_top_k)(int64_t n, const void *x, int64_t label, int k, float *out);
} stk_softmax_fns;

typedef struct stk_softmax_table {
    stk_softmax_fns f32, f64;
} stk_softmax_table;

STK_ISA_TABLE(stk_softmax_table, stk_softmax)

#endif

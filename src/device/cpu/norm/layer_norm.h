/* Rows of layer normalisation: n elements side by side for each row. */
#ifndef STK_DEVICE_CPU_NORM_LAYER_NORM_H
#define STK_DEVICE_CPU_NORM_LAYER_NORM_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

enum { STK_LAYER_NORM_ROWS = 32 }; /* whose gradients of scale and bias are added up before they go into doubles */

typedef struct stk_layer_norm_fns {
    /* n_rows rows of x [n]; mean and inv_std one a row. y may be x. */
    void (*forward)(int64_t n_rows, int64_t n, const void *x, const void *scale, const void *bias, double eps, void *y,
                    void *mean, void *inv_std);
    /* Adds the rows' part of dscale and dbias to sums[2][n]; part is [2][n] of the statistics' type, for use inside. dx
     * may be dy or x. */
    void (*grad)(int64_t n_rows, int64_t n, const void *dy, const void *x, const void *scale, const void *mean,
                 const void *inv_std, void *dx, void *part, double *sums);
} stk_layer_norm_fns;

/* By the dtype of x and y; of the 16-bit ones statistics and parameters are f32. */
typedef struct stk_layer_norm_table {
    stk_layer_norm_fns fns[STK_N_DTYPES];
} stk_layer_norm_table;

STK_ISA_TABLE(stk_layer_norm_table, stk_layer_norm)

#ifdef STK_ISA_X86
/* Of bf16, where stk_isa_has_bf16. */
extern const stk_layer_norm_fns stk_layer_norm_avx512bf16;
#endif

#endif

/* A sample of group normalisation: n_rows rows of n_channels, in n_groups groups. */
#ifndef STK_DEVICE_CPU_NORM_GROUP_NORM_H
#define STK_DEVICE_CPU_NORM_GROUP_NORM_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

typedef struct stk_group_norm_sizes {
    int64_t n_rows, n_channels, n_groups;
    double eps;
} stk_group_norm_sizes;

typedef struct stk_group_norm_fns {
    /* scratch: 4 * n_channels doubles. mean and inv_std [n_groups]. y may be x. */
    void (*forward)(const stk_group_norm_sizes *s, const void *x, const void *scale, const void *bias, void *y,
                    void *mean, void *inv_std, double *scratch);
    /* Adds the sample's part of dscale and dbias to sums[2][n_channels]. dx may be dy or x. */
    void (*grad)(const stk_group_norm_sizes *s, const void *dy, const void *x, const void *scale, const void *mean,
                 const void *inv_std, void *dx, double *sums, double *scratch);
} stk_group_norm_fns;

typedef struct stk_group_norm_table {
    stk_group_norm_fns f32, f64;
} stk_group_norm_table;

STK_ISA_TABLE(stk_group_norm_table, stk_group_norm)

#endif

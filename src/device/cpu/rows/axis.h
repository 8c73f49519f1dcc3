/* Along one axis: x as [n_outer, n, n_inner], and what is done for one of n_outer and inner elements begin .. end-1. */
#ifndef STK_DEVICE_CPU_ROWS_AXIS_H
#define STK_DEVICE_CPU_ROWS_AXIS_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

enum { STK_AXIS_TILE = 64 }; /* inner elements of a call at most */

typedef struct stk_axis_fns {
    /* src and dst at the first inner element; n_inner is the stride along the axis. */
    void (*argmax)(int64_t n, int64_t n_inner, int n_here, const void *src, bool last, int32_t *dst);
    void (*cumsum)(int64_t n, int64_t n_inner, int n_here, const void *src, bool exclusive, bool reverse, void *dst);
    /* dst[i] = value. */
    void (*fill)(int64_t n, int64_t value, void *dst);
} stk_axis_fns;

typedef struct stk_axis_table {
    stk_axis_fns fns[STK_N_DTYPES]; /* empty for dtypes without kernels */
} stk_axis_table;

STK_ISA_TABLE(stk_axis_table, stk_axis)

#endif

/* Sums, maxima, minima and products. Accumulators are wide: double for floats, int64 for integers. A call adds at most
 * a few thousand elements in the narrow type before it goes over to the wide one, so that long sums stay exact.
 */
#ifndef STK_DEVICE_CPU_ROWS_REDUCE_H
#define STK_DEVICE_CPU_ROWS_REDUCE_H

#include "device/cpu/simd/isa.h"
#include "graph/op.h"

typedef union stk_wide {
    double f;
    int64_t i;
} stk_wide;

enum { STK_REDUCE_RUN = 4096, STK_REDUCE_ROWS = 64 };

typedef struct stk_reduce_fns {
    /* *acc takes in n <= STK_REDUCE_RUN elements side by side. */
    void (*run)(int64_t n, const void *src, stk_wide *acc);
    /* acc[c] takes in src[r * stride + c] for n_rows <= STK_REDUCE_ROWS rows. */
    void (*columns)(int64_t n_rows, int64_t n_cols, const void *src, int64_t stride, stk_wide *acc);
    /* acc[c] takes in other[c]. */
    void (*merge)(int64_t n, const stk_wide *other, stk_wide *acc);
    /* dst[c] = acc[c], divided by divisor for floats. */
    void (*finish)(int64_t n, const stk_wide *acc, double divisor, void *dst);
    stk_wide first; /* what an accumulator starts with */
} stk_reduce_fns;

/* Empty (run is NULL) for dtypes without kernels. */
typedef struct stk_reduce_table {
    stk_reduce_fns sum[STK_N_DTYPES], max[STK_N_DTYPES], min[STK_N_DTYPES], prod[STK_N_DTYPES];
} stk_reduce_table;

STK_ISA_TABLE(stk_reduce_table, stk_reduce)

#endif

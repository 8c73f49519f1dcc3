/* How groups of 256 work-items share the columns of matrices: COLUMN_ARGS and FIND_COLUMNS of kernels/dialect.h. A
 * work-item has a few neighbouring columns, and goes down the rows of one part. It depends on the shape alone. */
#ifndef STK_DEVICE_GPU_OPS_COLUMNS_H
#define STK_DEVICE_GPU_OPS_COLUMNS_H

#include "device/gpu/gpu.h"

typedef struct gpu_columns {
    int64_t n_outer, n_along, n_columns; /* matrices, their rows and columns */
    int each, n_side;                    /* columns of a work-item: the setting EACH; work-items side by side */
    int64_t n_parts, n_each;             /* of the rows */
} gpu_columns;

/* is_summed: each part has results of its own, so that many are a burden. */
gpu_columns gpu_find_columns(stk_dtype dtype, int64_t n_outer, int64_t n_along, int64_t n_columns, bool is_summed);
/* The last launch goes over these, and has COLUMN_ARGS as its next arguments. */
void gpu_over_columns(gpu_maker *m, const gpu_columns *columns);
/* Floats in parts [n_parts,n_outer,n_columns]. */
int64_t gpu_count_parts(const gpu_columns *columns);

#endif

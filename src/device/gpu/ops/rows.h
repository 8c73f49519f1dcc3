/* How groups of 256 work-items share rows: several rows a group where they are short, and each work-item holds its part
 * of a row in registers where that fits. It depends on the shape alone. */
#ifndef STK_DEVICE_GPU_OPS_ROWS_H
#define STK_DEVICE_GPU_OPS_ROWS_H

#include "device/gpu/gpu.h"

enum { GPU_ROW_GROUP = 256 };

typedef struct gpu_rows {
    int64_t n_rows, n; /* rows, and elements in one */
    int n_items;       /* work-items along a row: a power of 2 */
    int n_held;        /* packs of each: as the setting HELD says; 0: too many */
} gpu_rows;

/* The last axis of x as rows, in packs of n_pack elements that begin where memory wants it, or where the row does. */
gpu_rows gpu_find_rows(stk_tensor_desc x, int n_pack);
/* Elements in 16 bytes. */
int gpu_pack(stk_dtype dtype);
/* The same if rows of n elements can be cut into such packs, else 1: the setting EACH. */
int gpu_each(stk_dtype dtype, int64_t n);
/* The last launch goes over these rows, and has n_rows, n and n_items as its next arguments. */
void gpu_over_rows(gpu_maker *m, const gpu_rows *rows);

#endif

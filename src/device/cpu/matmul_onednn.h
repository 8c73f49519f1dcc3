/* Large f32 products by oneDNN's sgemm, cut into a grid of parts, each of which runs on one thread of ours. */
#ifndef STK_DEVICE_CPU_MATMUL_ONEDNN_H
#define STK_DEVICE_CPU_MATMUL_ONEDNN_H

#include "device/cpu/onednn.h"
#include "device/cpu/parallel.h"

/* How a product is cut: by its sizes and the thread count alone. */
typedef struct stk_sgemm_grid {
    int rows, cols; /* parts along m and n */
} stk_sgemm_grid;

stk_sgemm_grid stk_sgemm_cut(int64_t m, int64_t n, int n_threads);
/* Part i_part of the grid's rows * cols. */
stk_status stk_sgemm_part(const stk_sgemm *g, stk_sgemm_grid grid, int i_part);
/* All parts, on n_threads. */
stk_status stk_sgemm_run(const stk_sgemm *g, int n_threads);

/* Whether it is faster than our own kernel: where packing is little beside the arithmetic. */
bool stk_sgemm_pays(int64_t m, int64_t n, int64_t k);

#endif

/* Large f32 products by oneDNN's sgemm, cut into a grid of parts, each of which runs on one thread of ours. A bias is
 * added by each part to its rows of c when they are made. */
#ifndef STK_DEVICE_CPU_MATMUL_MATMUL_ONEDNN_H
#define STK_DEVICE_CPU_MATMUL_MATMUL_ONEDNN_H

#include "device/cpu/onednn/onednn.h"
#include "device/cpu/threads/parallel.h"

/* How a product is cut: by its sizes and the thread count alone. */
typedef struct stk_sgemm_grid {
    int rows, cols; /* parts along m and n */
} stk_sgemm_grid;

stk_sgemm_grid stk_sgemm_cut(int64_t m, int64_t n, int n_threads);
/* Part i_part of the grid's rows * cols. */
stk_status stk_sgemm_part(const stk_sgemm *g, stk_sgemm_grid grid, int i_part);
/* All parts, on n_threads. */
stk_status stk_sgemm_run(const stk_sgemm *g, int n_threads);

/* What oneDNN packs for all parts at a time, whichever way they are cut: for stk_kernel.library_bytes. */
size_t stk_sgemm_library_bytes(int64_t m, int64_t n, int64_t k, int n_threads);

/* Parts along k instead: 1, or n_threads where parts along m and n would be so small that oneDNN multiplies them
 * without packing (gradients of square weights: 0.6 to 0.8 of the speed), while whole ones are not. */
int stk_sgemm_depth(int64_t m, int64_t n, int64_t k, int n_threads);
/* Scratch memory for the parts but the first. */
size_t stk_sgemm_deep_bytes(int64_t m, int64_t n, int depth);
/* A product that does not add and whose c has no gaps, in `depth` parts along k that are added up. */
stk_status stk_sgemm_run_deep(const stk_sgemm *g, int depth, int n_threads, float *scratch);

/* Whether it is faster than our own kernel: where packing is little next to the arithmetic. */
bool stk_sgemm_pays(int64_t m, int64_t n, int64_t k);

#endif

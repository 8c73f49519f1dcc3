/* What oneDNN takes from the C library for a product of f32 on one thread: it packs blocks of both operands. The
 * blocks' sizes are those of its gemm driver for AVX-512 in 2.6 and 3.x (bm, bn, bk in gemm_info.cpp), which has the
 * largest.
 */
#ifndef STK_DEVICE_CPU_ONEDNN_SGEMM_MEMORY_H
#define STK_DEVICE_CPU_ONEDNN_SGEMM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* The most bytes that a product of [m,k] and [k,n] packs at a time. Some are multiplied as they lie: then fewer. */
size_t stk_sgemm_packing_bytes(int64_t m, int64_t n, int64_t k);

/* Before a product, by its thread: in the first ones it sees to it that later ones pack in the same place. Without it,
 * a thread's packed blocks lay in up to eight places of the heap. */
void stk_sgemm_settle_thread(void);
/* By a thread that allocates much and will multiply: the next products count as the first again. */
void stk_sgemm_unsettle_thread(void);

#endif

/* What a matmul is, and the ways to compute it; their order is in matmul.c. */
#ifndef STK_DEVICE_CPU_MATMUL_MATMUL_IMPLS_H
#define STK_DEVICE_CPU_MATMUL_MATMUL_IMPLS_H

#include "device/cpu/impl.h"
#include "device/cpu/matmul/matmul.h"

/* One product, or n_batch of them. */
typedef struct stk_matmul_sizes {
    stk_gemm gemm; /* strides and sizes; pointers are set by a run */
    bool has_bias;
    int64_t n_batch, a_step, b_step, c_step; /* bytes from one matrix to the next */
} stk_matmul_sizes;

stk_matmul_sizes stk_matmul_sizes_of(const stk_op_call *call);
/* From one row of a or b to the next as they lie in memory, turned or not. With a side of 1 a turned matrix looks like
 * one that is not, whose rows are as long as that. */
static inline int64_t stk_gemm_a_step(const stk_gemm *g)
{
    return g->a_col != 1 ? g->a_col : g->a_row > g->k ? g->a_row : g->k;
}

static inline int64_t stk_gemm_b_step(const stk_gemm *g)
{
    return g->b_col != 1 ? g->b_col : g->b_row > g->n ? g->b_row : g->n;
}

double stk_matmul_flops(const stk_matmul_sizes *sizes);
/* One where it is small. */
int stk_matmul_threads(const stk_cpu_device *device, const stk_matmul_sizes *sizes);

/* matmul_product.c: where product.h has a fast way, by own tiles or by oneDNN's primitive. STK_UNSUPPORTED where oneDNN
 * has none. */
bool stk_matmul_tiles_supports(const stk_cpu_device *device, const stk_op_call *call);
bool stk_matmul_tiles_can(const stk_cpu_device *device, const stk_op_call *call);
/* f32 whose a is read by columns that lie multiples of 4 KiB apart, and deep: all of a column is in the same few sets
 * of the caches, and oneDNN's packing waits for memory. True where tiles are there instead. */
bool stk_matmul_meets_few_sets(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_matmul_tiles_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
bool stk_matmul_onednn_supports(const stk_cpu_device *device, const stk_op_call *call);
bool stk_matmul_onednn_can(const stk_cpu_device *device, const stk_op_call *call);
/* Those in bf16 that are too small or too narrow for the above. */
bool stk_matmul_small_tiles_supports(const stk_cpu_device *device, const stk_op_call *call);
bool stk_matmul_small_onednn_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_matmul_onednn_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
/* matmul_vector.c: one row of f32 and one matrix, of which nothing is packed. */
bool stk_matmul_vector_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_matmul_vector_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
/* matmul_sgemm.c: f32, where packing is little next to the arithmetic. */
bool stk_matmul_sgemm_supports(const stk_cpu_device *device, const stk_op_call *call);
bool stk_matmul_sgemm_can(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_matmul_sgemm_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);
/* matmul_own.c: all in f32 and f64. */
bool stk_matmul_own_supports(const stk_cpu_device *device, const stk_op_call *call);
stk_status stk_matmul_own_make(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out);

#endif

/* Products of one row with a matrix, which are as fast as memory gives the matrix: nothing is packed. */
#ifndef STK_DEVICE_CPU_MATMUL_MATMUL_VECTOR_H
#define STK_DEVICE_CPU_MATMUL_MATMUL_VECTOR_H

#include "device/cpu/cpu.h"
#include "device/cpu/matmul/matmul.h"

typedef struct stk_matvec_table {
    /* y [n] = w x with w [n,k]: rows. */
    void (*dot_rows)(int64_t n, int64_t k, const float *x, const float *w, float *y);
    /* y [n] += x w with w [k,n]: rows as well, each times a number. */
    void (*add_rows)(int64_t n, int64_t k, const float *x, const float *w, float *y);
} stk_matvec_table;

STK_ISA_TABLE(stk_matvec_table, stk_matvec)

/* True for one row of f32 and one matrix. */
bool stk_cpu_is_matvec(const stk_gemm *sizes, int64_t n_batch, stk_dtype dtype);
/* The kernel for such a call; sizes and strides of *sizes. */
stk_status stk_cpu_matvec_kernel(const stk_cpu_device *device, const stk_gemm *sizes, bool has_bias, stk_kernel *out);

#endif

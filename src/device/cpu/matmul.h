/* Matrix product c = a b for matrices with any strides, c row-major. */
#ifndef STK_DEVICE_CPU_MATMUL_H
#define STK_DEVICE_CPU_MATMUL_H

#include <stddef.h>
#include <stdint.h>

#include "device/cpu/isa.h"

/* One product. Element (i, l) of a [m,k] is at a[i * a_row + l * a_col], and so on; strides in elements. */
typedef struct stk_gemm {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
    const void *a, *b;
    void *c;
    void *packed_b; /* all threads': packed_b_bytes, 64-byte aligned */
    void *packed_a; /* this thread's: packed_a_bytes */
} stk_gemm;

typedef struct stk_gemm_fns {
    int tile_rows, tile_cols;
    /* What one of n_threads threads does of a product; all of them take part, since there are barriers inside. */
    void (*run)(const stk_gemm *gemm, int i_thread, int n_threads);
    size_t (*packed_b_bytes)(int64_t n, int64_t k, int n_threads);
    size_t packed_a_bytes;
} stk_gemm_fns;

typedef struct stk_gemm_table {
    stk_gemm_fns f32, f64;
} stk_gemm_table;

STK_ISA_TABLE(stk_gemm_table, stk_gemm)

#endif

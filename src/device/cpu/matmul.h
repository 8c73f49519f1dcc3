/* Matrix product c = a b for matrices with any strides, c row-major. */
#ifndef STK_DEVICE_CPU_MATMUL_H
#define STK_DEVICE_CPU_MATMUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cpu/isa.h"

/* One product. Element (i, l) of a [m,k] is at a[i * a_row + l * a_col], and so on; strides in elements. */
typedef struct stk_gemm {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
    const void *a, *b;
    void *c;
    void *packed_b; /* all parts': packed_b_bytes, 64-byte aligned; this worker's: panel_bytes, for multiply_panels */
    void *packed_a; /* this worker's: packed_a_bytes */
} stk_gemm;

typedef struct stk_gemm_fns {
    int tile_rows, tile_cols;
    /* A product goes columns_at_once columns at a time. Of each such block [col, col + n), parts share either the
     * columns, or first the packing of b and then the rows. */
    int64_t (*columns_at_once)(int64_t n, int64_t k);
    bool (*has_small_a)(const stk_gemm *gemm);
    bool (*shares_rows)(const stk_gemm *gemm, int n_parts);
    void (*pack_share)(const stk_gemm *gemm, int64_t col, int64_t n, int i_part, int n_parts);
    void (*multiply_rows)(const stk_gemm *gemm, int64_t col, int64_t n, int i_part, int n_parts);
    void (*multiply_columns)(const stk_gemm *gemm, int64_t col, int64_t n, int i_part, int n_parts);
    /* Instead of multiply_columns for a small a. *has_a says whether this worker has packed this product's a already,
     * starts false and is kept up to date, so that many parts cost no more than few. */
    void (*multiply_panels)(const stk_gemm *gemm, int64_t col, int64_t n, int i_part, int n_parts, bool *has_a);
    size_t (*packed_b_bytes)(int64_t n, int64_t k, int n_parts);
    size_t packed_a_bytes, panel_bytes;
} stk_gemm_fns;

typedef struct stk_gemm_table {
    stk_gemm_fns f32, f64;
} stk_gemm_table;

STK_ISA_TABLE(stk_gemm_table, stk_gemm)

#endif

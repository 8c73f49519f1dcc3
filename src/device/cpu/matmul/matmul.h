/* Matrix product c = a b for matrices with any strides, c row-major. */
#ifndef STK_DEVICE_CPU_MATMUL_MATMUL_H
#define STK_DEVICE_CPU_MATMUL_MATMUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cpu/simd/isa.h"

/* One product. Element (i, l) of a [m,k] is at a[i * a_row + l * a_col], and so on; strides in elements. */
typedef struct stk_gemm {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
    const void *a, *b;
    const void *bias; /* [n], added to each row of c after the sums; NULL: none */
    void *c;
    void *packed_b; /* all parts': packed_b_bytes, 64-byte aligned; this worker's: panel_bytes, for multiply_panels */
    void *packed_a; /* this worker's: packed_a_bytes */
    /* Tiles from the last to the first: what a core fetches ahead then lies before its rows, not in the next thread's.
     */
    bool downwards;
} stk_gemm;

/* What a block leaves out, where query i sees keys 0 .. i + diagonal: c's columns are keys (COLUMNS), or what is summed
 * over ends at the last key that c's rows see (END), or c's rows are keys and the sum starts at the first query that
 * sees them (START; the first block of queries then writes, whatever `adds` says, and the others add). */
typedef enum stk_gemm_skip { STK_SKIP_NONE, STK_SKIP_COLUMNS, STK_SKIP_END, STK_SKIP_START } stk_gemm_skip;

/* A product of blocks that lie in the cache: c [m,n] (+)= a b. */
typedef struct stk_gemm_block {
    int64_t m, n, k;
    const void *a; /* one of a_row and a_col is 1 */
    int64_t a_row, a_col;
    const void *b; /* from pack_block, of `depth` rows */
    int64_t depth;
    void *c;
    int64_t c_row;
    bool adds, is_large; /* b does not stay in a core's cache; says nothing about the result */
    stk_gemm_skip skip;
    int64_t diagonal;
} stk_gemm_block;

typedef struct stk_gemm_fns {
    int low_rows, tile_cols;
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
    /* Blocks, for kernels that make one matrix after the other in the cache. b [k,n] packed has block_elements. */
    int64_t (*block_elements)(int64_t k, int64_t n);
    void (*pack_block)(const void *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, void *to);
    void (*multiply_block)(const stk_gemm_block *block);
} stk_gemm_fns;

typedef struct stk_gemm_table {
    stk_gemm_fns f32, f64;
} stk_gemm_table;

STK_ISA_TABLE(stk_gemm_table, stk_gemm)

#endif

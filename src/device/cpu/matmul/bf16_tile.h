/* Products of blocks that lie in the cache: of bf16 by the instruction that multiplies two pairs of bf16 and adds both
 * products to an f32 (AVX512-BF16), and of f32 (AVX-512). Attention in bf16 is built of them (attention_avx512bf16.c),
 * and large products (tile_product.h).
 *
 *   pair    two neighbours along k, (l, l + 1) with an even l: 32 bits
 *   panel   some columns of k rows, as k/2 rows of pairs:  (0,1) of column 0, (0,1) of column 1, ... (2,3) of column 0
 *   c = a b    a is read in rows where it lies, whose elements are pairs as they are, or from panels; b from panels
 *
 * An odd k ends with a pair whose second element is 0. In f32 it is one element that takes 32 bits, and the layout is
 * the same: a pair stands for an element, and k need not be even.
 */
#ifndef STK_DEVICE_CPU_MATMUL_BF16_TILE_H
#define STK_DEVICE_CPU_MATMUL_BF16_TILE_H

#include <stddef.h>
#include <stdint.h>

#include "device/cpu/matmul/matmul.h"
#include "device/cpu/simd/isa.h"

/* Columns of a panel: of b, and of a transposed a (rows of c). */
enum { STK_BF16_B_WIDTH = 64, STK_BF16_A_WIDTH = 48, STK_BF16_SQUARE = 32 };

/* c [m,n] = a b, or add + a b, or either plus a bias. */
typedef struct stk_tile_block {
    int64_t m, n, k;
    const void *a;
    int64_t a_row;    /* from row to row; 0: a is in panels of STK_BF16_A_WIDTH rows */
    const void *b;    /* in panels of STK_BF16_B_WIDTH columns */
    int64_t depth;    /* rows of the panels of a and b, k or more */
    const float *add; /* NULL: nothing; may be c */
    int64_t add_row;
    const float *bias; /* [n], added to each row last; NULL: none */
    float *c;
    uint16_t *rounded_c; /* not NULL: c goes here instead, as bf16 */
    int64_t c_row;
    bool is_far;       /* c is written past the caches, where it is f32 and lines allow it */
    const void *ahead; /* [ahead_bytes], brought into the second-level cache on the way; NULL: nothing */
    int64_t ahead_bytes;
    /* As in matmul.h, but that with STK_SKIP_START, too, `add` alone says what is added to. */
    stk_gemm_skip skip;
    int64_t diagonal;
} stk_tile_block;

/* Elements are uint16_t or float. */
typedef struct stk_tile_fns {
    /* Panels of `width` columns of x [k,n], whose element (l, j) is at x[l * row + j * col], of which one is 1; what
     * lies beyond n is 0. width is a multiple of 16. to has stk_bf16_panel_elements. Of bf16 alone. */
    void (*pack)(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, uint16_t *to);
    /* The same for an x that no near cache holds, and panels that other threads read, too; to is 64-byte aligned. It
     * may be some rows of the panels, whose first one is even; the panels have `depth` of them, which is even as well.
     */
    void (*pack_far)(const void *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth, void *to);
    /* The same of an x in f32, each element rounded to bf16 as a cast does it. */
    void (*pack_rounded)(const float *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                         void *to);
    /* The same of an x in bf16. Of f32 alone. */
    void (*pack_widened)(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                         float *to);
    /* Rows of the transposed x [k,n]: element (l, j), which is at x[l * row + j], goes to to[j * to_row + l]. Of `to`,
     * memory for k and n rounded up to STK_BF16_SQUARE is written. */
    void (*transpose)(const void *x, int64_t row, int64_t k, int64_t n, void *to, int64_t to_row);
    /* The same of an x in bf16; and rows of x [m,k] themselves, of which k rounded up to 16 elements are written. Both
     * of f32 alone. */
    void (*transpose_widened)(const uint16_t *x, int64_t row, int64_t k, int64_t n, float *to, int64_t to_row);
    void (*widen)(const uint16_t *x, int64_t row, int64_t m, int64_t k, float *to, int64_t to_row);
    void (*multiply)(const stk_tile_block *block);
} stk_tile_fns;

static inline int64_t stk_bf16_panel_elements(int64_t k, int64_t n, int width)
{
    return (n + width - 1) / width * width * ((k + 1) / 2 * 2);
}

/* Where the build is for x86. */
extern const stk_tile_fns stk_bf16_tile_avx512bf16, stk_f32_tile_avx512;
/* NULL where this processor lacks the instructions. */
const stk_tile_fns *stk_bf16_tile_of(stk_isa isa);
const stk_tile_fns *stk_f32_tile_of(stk_isa isa);

#endif

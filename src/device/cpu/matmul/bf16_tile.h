/* Products of blocks of bf16 that lie in the cache, by the instruction that multiplies two pairs of bf16 and adds both
 * products to an f32 (AVX512-BF16). Attention is built of them (attention_avx512bf16.c), and large
 * products (bf16_product.h).
 *
 *   pair    two neighbours along k, (l, l + 1) with an even l: 32 bits
 *   panel   some columns of k rows, as k/2 rows of pairs:  (0,1) of column 0, (0,1) of column 1, ... (2,3) of column 0
 *   c = a b    a is read in rows where it lies, whose elements are pairs as they are, or from panels; b from panels
 *
 * An odd k ends with a pair whose second element is 0.
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
typedef struct stk_bf16_block {
    int64_t m, n, k;
    const uint16_t *a;
    int64_t a_row;     /* from row to row; 0: a is in panels of STK_BF16_A_WIDTH rows */
    const uint16_t *b; /* in panels of STK_BF16_B_WIDTH columns */
    int64_t depth;     /* rows of the panels of a and b, k or more */
    const float *add;  /* NULL: nothing; may be c */
    int64_t add_row;
    const float *bias; /* [n], added to each row last; NULL: none */
    float *c;
    uint16_t *rounded_c; /* not NULL: c goes here instead, as bf16 */
    int64_t c_row;
    const void *ahead; /* [ahead_bytes], brought into the second-level cache on the way; NULL: nothing */
    int64_t ahead_bytes;
    /* As in matmul.h, but that with STK_SKIP_START, too, `add` alone says what is added to. */
    stk_gemm_skip skip;
    int64_t diagonal;
} stk_bf16_block;

typedef struct stk_bf16_tile_fns {
    /* Panels of `width` columns of x [k,n], whose element (l, j) is at x[l * row + j * col], of which one is 1; what
     * lies beyond n is 0. width is a multiple of 16. to has stk_bf16_panel_elements. */
    void (*pack)(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, uint16_t *to);
    /* The same for an x that no near cache holds, and panels that other threads read, too; to is 64-byte aligned. It
     * may be some rows of the panels, whose first one is even; the panels have `depth` of them, which is even as well.
     */
    void (*pack_far)(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                     uint16_t *to);
    /* The same of an x in f32, each element rounded as a cast does it. */
    void (*pack_rounded)(const float *x, int64_t row, int64_t col, int64_t k, int64_t n, int width, int64_t depth,
                         uint16_t *to);
    /* Rows of the transposed x [k,n]: element (l, j), which is at x[l * row + j], goes to to[j * to_row + l]. Of `to`,
     * memory for k and n rounded up to STK_BF16_SQUARE is written. */
    void (*transpose)(const uint16_t *x, int64_t row, int64_t k, int64_t n, uint16_t *to, int64_t to_row);
    void (*multiply)(const stk_bf16_block *block);
} stk_bf16_tile_fns;

static inline int64_t stk_bf16_panel_elements(int64_t k, int64_t n, int width)
{
    return (n + width - 1) / width * width * ((k + 1) / 2 * 2);
}

#ifdef STK_ISA_X86
extern const stk_bf16_tile_fns stk_bf16_tile_avx512bf16;
#endif

/* NULL where this processor lacks the instruction. */
static inline const stk_bf16_tile_fns *stk_bf16_tile_of(stk_isa isa)
{
#ifdef STK_ISA_X86
    return stk_isa_has_bf16(isa) ? &stk_bf16_tile_avx512bf16 : NULL;
#else
    (void)isa;
    return NULL;
#endif
}

#endif

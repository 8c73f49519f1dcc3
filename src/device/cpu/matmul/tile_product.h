/* Large products by own tiles: of bf16 by AVX512-BF16's (bf16_tile.h), or by AMX's (amx.h) where the processor has
 * them, which read a, too, from a packed block; and of f32 by AVX-512's, into which bf16 is widened as it is packed
 * where that is faster. What product.c takes there instead of oneDNN's matmul. b is packed once for all threads, which
 * oneDNN, called by each of them for a part, cannot know.
 *
 *   for some columns of c (b packed fits the third-level cache)
 *     for some of k     all threads pack b; then each claims a block of rows of c, whose a fits its second-level cache,
 *                       and goes through the panels of b. A transposed or widened a is copied block by block.
 *
 * Sums are f32 and added in the same order whatever the number of threads.
 */
#ifndef STK_DEVICE_CPU_MATMUL_TILE_PRODUCT_H
#define STK_DEVICE_CPU_MATMUL_TILE_PRODUCT_H

#include "device/cpu/amx/amx.h"
#include "device/cpu/matmul/bf16_tile.h"
#include "device/cpu/matmul/product.h"

typedef enum stk_tile_kind { STK_TILES_NONE, STK_TILES_BF16, STK_TILES_F32, STK_TILES_AMX } stk_tile_kind;

/* How a product is cut; made once. Threads: any number may run it, each with its own scratch memory. */
typedef struct stk_tile_product {
    stk_product_shape shape;
    const stk_tile_fns *tiles;
    const stk_amx_fns *amx; /* not NULL: instead of tiles */
    int64_t in_size, size;  /* bytes of an element of a and b, and of one that tiles read */
    int n_threads;
    int64_t width, grain;   /* columns of a panel of b; what depth is a multiple of */
    int64_t columns, depth; /* of b packed at a time; depth is even */
    int64_t a_step;         /* of a block that was turned round; no power of two, which would fill few cache sets */
    int row_parts, column_parts;                        /* of the multiplication */
    size_t b_bytes, sums_bytes, a_bytes, partial_bytes; /* of scratch memory, in turn; the last two of each thread */
} stk_tile_product;

/* Depths at which oneDNN 2.6's products of bf16 by AMX end in an illegal instruction, for many sizes of the other
 * sides: the last 31 of the depth come to a whole step of tiles that were not configured for it. */
static inline bool stk_product_may_fault(int64_t k)
{
    enum { STEP = 32, NONE_SEEN = 256 };
    return k % STEP == STEP - 1 && k > NONE_SEEN;
}

/* Whether it is the fastest way on this processor. */
bool stk_tile_product_pays(stk_isa isa, const stk_product_shape *shape);
/* Whether it can be done so, fast or not. */
bool stk_tile_product_covers(stk_isa isa, const stk_product_shape *shape);
/* The tiles that multiply elements of `in` fastest. */
stk_tile_kind stk_tile_product_kind(stk_isa isa, stk_dtype in);
/* For shapes that are covered; by tiles that this processor has. */
stk_tile_product stk_tile_product_cut(stk_isa isa, stk_tile_kind kind, const stk_product_shape *shape, int n_threads);
/* Bytes of 64-byte aligned scratch memory that a run needs. */
size_t stk_tile_product_scratch_bytes(const stk_tile_product *product);
/* b packed once for many runs: bytes, and packing them from a b in f32 whose elements are rounded to the bf16 that a
 * run would find. packed_b is 64-byte aligned. What is packed does not depend on the number of threads. */
size_t stk_tile_product_kept_bytes(const stk_tile_product *product);
/* Equal for products that may share what is packed of a weight. */
uint64_t stk_tile_product_kept_layout(const stk_tile_product *product);
void stk_tile_product_pack(const stk_tile_product *product, const float *b, void *packed_b);
/* bias: [n], added before rounding; NULL: none. packed_b: b is not looked at; NULL: b is packed on the way. */
void stk_tile_product_run(const stk_tile_product *product, const void *a, const void *b, const void *packed_b,
                          const float *bias, void *c, void *scratch);

#endif

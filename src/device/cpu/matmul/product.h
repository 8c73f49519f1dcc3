/* Products where something is made for this processor's vectors: own tiles (tile_product.h) for those of bf16 by AMX
 * and for large ones by AVX-512's bf16 instructions; oneDNN's matmul primitive for the others there, and for f32 on
 * AVX-512 where all parts lie densely. Inputs are read as they lie, transposed or not; sums are f32. Of oneDNN's:
 *
 * A product is cut into a grid of parts, each of which runs on one thread of ours: oneDNN's own threads are never used.
 * The cut depends on the sizes and the thread count alone, so that the same number of threads gives the same bits.
 */
#ifndef STK_DEVICE_CPU_MATMUL_PRODUCT_H
#define STK_DEVICE_CPU_MATMUL_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cpu/cpu.h"

/* By own tiles, which have to cover it (stk_tile_product_covers), by oneDNN, or by whichever pays. */
typedef enum stk_product_way { STK_PRODUCT_BY_RULE, STK_PRODUCT_BY_TILES, STK_PRODUCT_BY_ONEDNN } stk_product_way;

/* c [m,n] = a b, or c += a b where it adds, or a b plus a bias [n] for each row, n_batch times; element (i, l) of a is
 * at a[i * a_step + l], or at a[l * a_step + i] where it is transposed, and so on for b; c is at c[i * c_step + j].
 * Steps from one matrix to the next are a_next, b_next and c_next elements. */
typedef struct stk_product_shape {
    int64_t m, n, k;
    bool transpose_a, transpose_b, adds, has_bias; /* not both of the latter */
    int64_t a_step, b_step, c_step;
    int64_t n_batch, a_next, b_next, c_next; /* n_batch 0: one */
    stk_dtype in, out;                       /* BF16 to BF16 or F32, or F32 to F32 */
    stk_product_way way;
} stk_product_shape;

typedef struct stk_product stk_product;

/* Whether these sizes are worth it, and whether the processor has vectors for it; whether oneDNN uses them is found out
 * by stk_product_new. */
bool stk_product_pays(const stk_product_shape *shape);
bool stk_product_is_fast(const stk_cpu_device *device, stk_dtype in);
/* In parts for n_threads of the device. Returned: free with stk_product_free. STK_UNSUPPORTED where this processor has
 * no fast way. */
stk_status stk_product_new(const stk_cpu_device *device, const stk_product_shape *shape, stk_product **out);
void stk_product_free(stk_product *product); /* accepts NULL */
/* Bytes of 64-byte aligned scratch memory that a run needs, for all threads. */
size_t stk_product_scratch_bytes(const stk_product *product);
/* All parts, on the device's threads. bias: f32 [n] where the shape has one, else NULL. */
stk_status stk_product_run(const stk_product *product, const void *a, const void *b, const float *bias, void *c,
                           void *scratch);
/* For stk_kernel.library_bytes. */
size_t stk_product_library_bytes(const stk_product *product);
/* "onednn brg:avx512_core_bf16". Borrowed from product. */
const char *stk_product_impl(const stk_product *product);

/* The kernel whose run is a product in parts: a and b are those inputs of the call, a bias is
 * its third, c is its output. */
stk_status stk_product_kernel(const stk_cpu_device *device, const stk_product_shape *shape, int a, int b,
                              stk_kernel *out);
/* Of such a kernel whose b may be a weight: it would keep b packed (device.h), where that saves anything. */
void stk_product_kernel_keep_b(stk_kernel *kernel);

#endif

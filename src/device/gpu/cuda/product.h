/* Products of matrices by cuBLASLt, where it is here.
 *
 *   product.c     the library, and a product described to it and run
 *   choice.c      which of its ways is taken, the same one each time
 */
#ifndef STK_DEVICE_GPU_CUDA_PRODUCT_H
#define STK_DEVICE_GPU_CUDA_PRODUCT_H

#include "device/gpu/cuda/cublaslt.h"
#include "device/gpu/cuda/cuda.h"

extern cublaslt_symbols cublaslt; /* set by cuda_load_products */

/* A product as the library has it described: columns where ours are rows, so that its C' = B' A'. */
typedef struct cuda_product {
    gpu_library_product what;
    cublaslt_handle handle; /* borrowed */
    cublaslt_operation operation;
    cublaslt_layout a, b, c; /* ours; its first operand is b */
} cuda_product;

/* Where its matrices lie. */
typedef struct cuda_product_memory {
    void *a, *b, *c, *bias, *onto, *scratch;
} cuda_product_memory;

enum { CUDA_WORKSPACE_GRAIN = 256 }; /* what a workspace is aligned to, and ours is not: scratch has room for it */

/* STK_OK, or why there is none; once. Its version is its number, 130002 of 13.0.2. */
stk_status cuda_load_products(cuda_library *out, size_t *version);
/* The context's, which is made when it is first wanted. STK_UNSUPPORTED, without a text: there is none. */
stk_status cuda_product_handle(gpu_context *context, cublaslt_handle *out);

stk_status cuda_open_product(cublaslt_handle handle, const gpu_library_product *what, cuda_product *out);
void cuda_close_product(cuda_product *product);
stk_status cuda_run_product(const cuda_product *product, const cuda_product_memory *at, cu_stream stream);

/* choice.c: driver.h's plan_product */
stk_status cuda_plan_product(gpu_context *context, gpu_library_product *product);

#endif

/* Products of matrices in tiles (kernels/tile.h): sizes, the cut, launches. For matmul and convolutions. */
#ifndef STK_DEVICE_GPU_OPS_PRODUCT_H
#define STK_DEVICE_GPU_OPS_PRODUCT_H

#include "device/gpu/gpu.h"

/* As tile.h's and dialect.h's structs of these names. */
typedef struct gpu_product {
    int64_t c_batch, part_stride;
    int32_t m, n, k, k_each;
    int32_t ldc, bias_batch;
    int32_t tiles_m, tiles_n, tile_m, tile_n;
    int32_t has_bias, relu, in_pairs, has_onto;
} gpu_product;

/* As matmul.dev's struct. */
typedef struct gpu_matrices {
    int64_t a_batch, b_batch;
    int32_t m, n, k, lda, ldb;
} gpu_matrices;

/* Where a matrix of a product lies that is only part of an op. */
typedef struct gpu_product_place {
    gpu_argument_kind kind;
    int i;
    size_t offset;
    stk_dtype dtype;
} gpu_product_place;

typedef struct gpu_product_places {
    gpu_product_place a, b, c;
    const gpu_product_place *onto; /* added to the product; of c's type and shape, and c itself or apart; NULL: none */
} gpu_product_places;

typedef struct gpu_divisor {
    int32_t d;
    uint32_t factor;
    int32_t shift;
} gpu_divisor;

/* What is multiplied. */
typedef struct gpu_product_call {
    const char *file, *settings; /* in kernels/; settings of the file's own */
    int64_t n_batch, m, n, k;    /* of each matrix */
    int64_t c_batch, ldc, bias_batch;
    int i_a, i_b; /* which inputs */
    bool a_along_k, b_along_k;
    /* Every N neighbours in memory are neighbours along K (M, N), from a place that is a multiple of that. */
    int64_t a_run, b_run;
    bool runs_are_rows; /* behind a run lies what is outside, and not another run */
    bool relu;
    const gpu_matrices *matrices;     /* operands that lie in rows: a library may multiply them; NULL: others */
    const gpu_product_places *places; /* instead of i_a, i_b, input 2 and output 0; one batch; NULL: those */
    const void *operands;             /* the file's struct */
    size_t operands_bytes;
} gpu_product_call;

/* With input 2 as a bias where there are three, into output 0. */
void gpu_multiply(gpu_maker *m, const gpu_product_call *call);
/* The same, where the driver's library makes it. False: it does not, and nothing is added. */
bool gpu_multiply_by_library(gpu_maker *m, const gpu_product_call *call);
/* C = A B of matrices that lie in rows, A [M,K] or, transposed, [K,M], B [K,N] or [N,K]. */
void gpu_multiply_matrices(gpu_maker *m, const gpu_matrices *matrices, int64_t ldc, bool transpose_a, bool transpose_b,
                           const gpu_product_places *places);
gpu_divisor gpu_divide_by(int64_t d);

#endif

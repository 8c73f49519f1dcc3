/* Products of matrices in tiles (kernels/tile.h): sizes, the cut, launches. For matmul and convolutions. */
#ifndef STK_DEVICE_GPU_OPS_PRODUCT_H
#define STK_DEVICE_GPU_OPS_PRODUCT_H

#include "device/gpu/gpu.h"

/* As tile.h's and dialect.h's structs of these names. */
typedef struct gpu_product {
    int64_t c_batch, part_stride;
    int32_t m, n, k, k_each;
    int32_t ldc, bias_batch;
    int32_t tiles_m, tiles_n;
    int32_t has_bias, relu, in_pairs;
} gpu_product;

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
    const void *operands; /* the file's struct */
    size_t operands_bytes;
} gpu_product_call;

/* With input 2 as a bias where there are three, into output 0. */
void gpu_multiply(gpu_maker *m, const gpu_product_call *call);
gpu_divisor gpu_divide_by(int64_t d);

#endif

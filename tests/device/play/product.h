/* A product as cuBLASLt defines it, on the host: D = act(alpha op(A) op(B) + beta C + bias), matrices in columns, sums
 * in f32 over rising k, D rounded once. */
#ifndef TESTS_DEVICE_PLAY_PRODUCT_H
#define TESTS_DEVICE_PLAY_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

enum { TYPE_F32 = 0, TYPE_F16 = 2, TYPE_BF16 = 14 }; /* cudaDataType */

typedef struct play_matrix {
    uint64_t at;
    int64_t ld, stride; /* elements between columns; between matrices of a batch */
} play_matrix;

typedef struct play_product {
    int64_t n_batch, m, n, k;
    play_matrix a, b, c, d;
    uint64_t bias, workspace;
    size_t workspace_bytes;
    float alpha, beta;
    int transpose_a, transpose_b;
    int type, type_d, type_bias; /* of A and B; of C and D */
    int has_bias, relu, gelu;
    int tf32; /* what is multiplied is rounded to 10 bits */
} play_product;

/* product: a play_product */
void play_multiply(void *product);
size_t play_type_bytes(int type);
/* Element i of an array of that type. */
float play_load(uint64_t at, int64_t i, int type);
/* To nearest, as NVIDIA's libraries make TF32 of f32; what is infinite or no number stays. */
float play_round_to_tf32(float x);
void play_store(uint64_t at, int64_t i, int type, float x);

#endif

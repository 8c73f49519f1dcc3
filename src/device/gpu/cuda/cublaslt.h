/* The part of cuBLASLt that Stoker uses, by NVIDIA's documents of CUDA 12.0 and 13.0; loaded at run time, and optional.
 * CUBLASLT_SYMBOL_LIST is the only list of functions; all but the version return 0, or an error.
 */
#ifndef STK_DEVICE_GPU_CUDA_CUBLASLT_H
#define STK_DEVICE_GPU_CUDA_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

#include "device/gpu/cuda/cu.h"

typedef struct cublaslt_handle_state *cublaslt_handle;
typedef struct cublaslt_operation_state *cublaslt_operation;
typedef struct cublaslt_layout_state *cublaslt_layout;
typedef struct cublaslt_preference_state *cublaslt_preference;

typedef struct cublaslt_way { /* how a product is made: bytes that may be kept for the same version and chip */
    uint64_t data[8];
} cublaslt_way;

typedef struct cublaslt_result {
    cublaslt_way way;
    size_t workspace_bytes;
    int state; /* 0: the others are valid */
    float n_waves;
    int reserved[4];
} cublaslt_result;

enum {
    CUBLASLT_F32 = 0, /* types of elements */
    CUBLASLT_F16 = 2,
    CUBLASLT_BF16 = 14,
    CUBLASLT_COMPUTE_F32 = 68,  /* exact f32 of f32, and f32 sums of 16 bits */
    CUBLASLT_COMPUTE_TF32 = 77, /* f32 rounded to TF32, and f32 sums */

    CUBLASLT_TRANSPOSE_A = 3, /* of operations; 0 or 1 */
    CUBLASLT_TRANSPOSE_B = 4,
    CUBLASLT_EPILOGUE = 7,
    CUBLASLT_BIAS_POINTER = 8,
    CUBLASLT_EPILOGUE_BIAS = 4,

    CUBLASLT_BATCH_COUNT = 5, /* of layouts */
    CUBLASLT_BATCH_STRIDE = 6,

    CUBLASLT_MOST_WORKSPACE = 1, /* of preferences */
    CUBLASLT_REDUCTIONS = 3,
    CUBLASLT_ALIGNMENT_A = 5, /* and B, C, D */
    CUBLASLT_REDUCTION_IN_F32 = 2,
};

#define CUBLASLT_SYMBOL_LIST(X)                                                                                        \
    X(int, cublasLtCreate, (cublaslt_handle * out))                                                                    \
    X(int, cublasLtDestroy, (cublaslt_handle handle))                                                                  \
    X(size_t, cublasLtGetVersion, (void))                                                                              \
    X(int, cublasLtMatmulDescCreate, (cublaslt_operation * out, int compute, int scale_type))                          \
    X(int, cublasLtMatmulDescDestroy, (cublaslt_operation operation))                                                  \
    X(int, cublasLtMatmulDescSetAttribute, (cublaslt_operation operation, int what, const void *value, size_t bytes))  \
    X(int, cublasLtMatrixLayoutCreate, (cublaslt_layout * out, int type, uint64_t rows, uint64_t columns, int64_t ld)) \
    X(int, cublasLtMatrixLayoutDestroy, (cublaslt_layout layout))                                                      \
    X(int, cublasLtMatrixLayoutSetAttribute, (cublaslt_layout layout, int what, const void *value, size_t bytes))      \
    X(int, cublasLtMatmulPreferenceCreate, (cublaslt_preference * out))                                                \
    X(int, cublasLtMatmulPreferenceDestroy, (cublaslt_preference preference))                                          \
    X(int, cublasLtMatmulPreferenceSetAttribute,                                                                       \
      (cublaslt_preference preference, int what, const void *value, size_t bytes))                                     \
    X(int, cublasLtMatmulAlgoGetHeuristic,                                                                             \
      (cublaslt_handle handle, cublaslt_operation operation, cublaslt_layout a, cublaslt_layout b, cublaslt_layout c,  \
       cublaslt_layout d, cublaslt_preference preference, int n_wanted, cublaslt_result *out, int *n_out))             \
    X(int, cublasLtMatmul,                                                                                             \
      (cublaslt_handle handle, cublaslt_operation operation, const void *alpha, const void *a,                         \
       cublaslt_layout a_layout, const void *b, cublaslt_layout b_layout, const void *beta, const void *c,             \
       cublaslt_layout c_layout, void *d, cublaslt_layout d_layout, const cublaslt_way *way, void *workspace,          \
       size_t workspace_bytes, cu_stream stream))

#define X(result, name, parameters) result(*name) parameters;
typedef struct cublaslt_symbols {
    CUBLASLT_SYMBOL_LIST(X)
} cublaslt_symbols;
#undef X

#endif

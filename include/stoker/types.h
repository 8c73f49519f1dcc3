/* Element types and shapes, used by every other header. No arithmetic on tensors here. */
#ifndef STOKER_TYPES_H
#define STOKER_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* name, text, bytes of an element. */
#define STK_DTYPE_LIST(X)                                                                                              \
    X(F32, "f32", 4)                                                                                                   \
    X(BF16, "bf16", 2)                                                                                                 \
    X(F16, "f16", 2)                                                                                                   \
    X(F64, "f64", 8)                                                                                                   \
    X(I64, "i64", 8)                                                                                                   \
    X(I32, "i32", 4)                                                                                                   \
    X(I8, "i8", 1)                                                                                                     \
    X(U8, "u8", 1)                                                                                                     \
    X(BOOL, "bool", 1)

typedef enum stk_dtype {
#define X(name, text, bytes) STK_##name,
    STK_DTYPE_LIST(X)
#undef X
        STK_N_DTYPES
} stk_dtype;

enum { STK_MAX_RANK = 8 };

/* Dimensions, slowest first (row-major). Rank 0 is a scalar. Unused dims are 0, so that shapes compare by value. */
typedef struct stk_shape {
    int32_t rank;
    int64_t dim[STK_MAX_RANK];
} stk_shape;

/* A dimension not known yet: the batch of a model's graph, or the sides of images before they are resized. */
#define STK_ANY (-1)

#ifndef __cplusplus
/* STK_SHAPE(32, 32, 3): at least one dimension. Other languages: stk_shape_make. */
#define STK_SHAPE(...)                                                                                                 \
    ((stk_shape){.rank = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = {__VA_ARGS__}})
#endif

/* The same for C++ and other languages: dim [rank], which may be NULL for rank 0. Calls refuse a rank that is below 0
 * or above STK_MAX_RANK; no more is read of dim. Threads: any. */
STK_API stk_shape stk_shape_make(const int64_t *dim, int32_t rank);

STK_API const char *stk_dtype_name(stk_dtype dtype);
STK_API size_t stk_dtype_bytes(stk_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif

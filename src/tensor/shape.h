/* Shapes and dtypes: sizes, comparison, text. No arithmetic on elements. */
#ifndef STK_TENSOR_SHAPE_H
#define STK_TENSOR_SHAPE_H

#include "stoker/types.h"

typedef struct stk_tensor_desc {
    stk_dtype dtype;
    stk_shape shape;
} stk_tensor_desc;

/* A tensor's place in memory: row-major, contiguous. */
typedef struct stk_tensor_view {
    stk_tensor_desc desc;
    void *data;
} stk_tensor_view;

bool stk_shape_equal(stk_shape a, stk_shape b);
/* True when no dimension is STK_ANY. */
bool stk_shape_known(stk_shape shape);
/* Number of elements; 1 for a scalar. All dimensions must be known. */
int64_t stk_shape_count(stk_shape shape);
/* Product of the dimensions from axis `from` to `to` (not included). */
int64_t stk_shape_product(stk_shape shape, int from, int to);
/* a * b, or 2^60 where it is larger, which no shape may have: for sizes whose product nobody has checked yet. */
int64_t stk_dim_times(int64_t a, int64_t b);
/* STK_INVALID for a rank or a dimension out of range, or more than 2^47 bytes. */
stk_status stk_desc_check(stk_tensor_desc desc);
size_t stk_desc_bytes(stk_tensor_desc desc);
stk_tensor_desc stk_desc_make(stk_dtype dtype, stk_shape shape);

/* "[128,32,32,3]", STK_ANY as "?". Returns out. */
enum { STK_SHAPE_TEXT_BYTES = 192 };
const char *stk_shape_text(stk_shape shape, char out[STK_SHAPE_TEXT_BYTES]);
/* "f32[128,10]" */
const char *stk_desc_text(stk_tensor_desc desc, char out[STK_SHAPE_TEXT_BYTES]);

bool stk_dtype_is_float(stk_dtype dtype);
/* False when no dtype has that name. */
bool stk_dtype_from_name(const char *name, stk_dtype *out);

/* Numpy's rule, aligned at the right. STK_INVALID when two dimensions differ and neither is 1. */
stk_status stk_shape_broadcast(stk_shape a, stk_shape b, stk_shape *out);

#endif

/* Reductions, one element after the other in the order of memory: for the op, and for groups that end in one. Floats in
 * double, integers in 64 bits. */
#ifndef STK_DEVICE_REFERENCE_REDUCE_H
#define STK_DEVICE_REFERENCE_REDUCE_H

#include "device/reference/reference.h"

typedef struct stk_ref_reducer {
    int kind;
    stk_tensor_desc x;
    int64_t stride[STK_MAX_RANK]; /* of y over x */
    int64_t n_out;
    double n_each;       /* elements that one result is made of */
    stk_ref_number *acc; /* [n_out], borrowed */
} stk_ref_reducer;

/* y is the shape of what comes out; acc is made ready. */
void stk_ref_reduce_start(stk_ref_reducer *r, int kind, uint32_t axes, stk_tensor_desc x, stk_shape y,
                          stk_ref_number *acc);
/* Element i of x. */
void stk_ref_reduce_take(const stk_ref_reducer *r, int64_t i, stk_ref_number element);
void stk_ref_reduce_finish(const stk_ref_reducer *r, stk_dtype dtype, void *dst);

#endif

/* Numbers of every dtype for the reference device: one element at a time, slow and plain.
 * Floats travel as double, integers and bool as int64. Threads: any.
 */
#ifndef STK_DEVICE_REFERENCE_ELEMENT_H
#define STK_DEVICE_REFERENCE_ELEMENT_H

#include "graph/op.h"

typedef union stk_ref_number {
    double f;  /* of float dtypes */
    int64_t i; /* of the others */
} stk_ref_number;

stk_ref_number stk_ref_get(stk_dtype dtype, const void *data, int64_t i);
/* Floats round to nearest even, integers wrap. */
void stk_ref_put(stk_dtype dtype, void *data, int64_t i, stk_ref_number x);
/* x as memory of that dtype would keep it. */
stk_ref_number stk_ref_round(stk_dtype dtype, stk_ref_number x);

/* As doubles, whatever the dtype. */
double stk_ref_load(stk_dtype dtype, const void *data, int64_t i);
void stk_ref_store(stk_dtype dtype, void *data, int64_t i, double x);

/* --- the arithmetic of the element-wise ops --- */
stk_ref_number stk_ref_unary(int kind, stk_dtype dtype, stk_ref_number x);
stk_ref_number stk_ref_binary(int kind, stk_dtype dtype, stk_ref_number a, stk_ref_number b);
bool stk_ref_compare(int kind, stk_dtype dtype, stk_ref_number a, stk_ref_number b);
/* Towards zero and held at the ends for integers, NaN as 0; bool is "not 0". */
stk_ref_number stk_ref_cast(stk_dtype to, stk_dtype from, stk_ref_number x);
stk_ref_number stk_ref_from_double(stk_dtype dtype, double x);

#endif

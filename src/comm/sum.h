/* Sums of what several ranks have, in a binary tree over their order, so that the same numbers give the same bits, and
 * a rank that has the sum of 2, 4, 8 ... neighbours in such a tree stands for them:
 *
 *   ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)
 */
#ifndef STK_COMM_SUM_H
#define STK_COMM_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/types.h"

/* dst[0 .. n) = the sum of src[0], src[1], ...; f32, f64, bf16, i32 or i64, integers wrap around, and bf16 is added up
 * in f32 and has no mean. mean: divided by how many there are. dst may be one of the sources. */
void stk_comm_sum(stk_dtype dtype, void *dst, const void *const *src, int n_src, int64_t n, bool mean);

#endif

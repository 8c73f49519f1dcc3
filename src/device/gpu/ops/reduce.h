/* Reductions in parts: how many, and joining them. */
#ifndef STK_DEVICE_GPU_OPS_REDUCE_H
#define STK_DEVICE_GPU_OPS_REDUCE_H

#include "device/gpu/gpu.h"

/* REDUCE_FIRST, and REDUCE(a, b) for floats, as settings of a unit. A mean is a sum that gpu_join_parts divides. */
void gpu_reduce_settings(int kind, char *out, size_t n);
/* Into how many parts of n_each a reduction along n_along is cut, where n_groups groups each work on one part of at
 * least `least`. It depends on the shape alone. */
int64_t gpu_reduce_parts(int64_t n_groups, int64_t n_along, int64_t least, int64_t *n_each);
/* The next launch: output i_out [n] of the parts f32 [n_parts,n] at that place of the scratch memory. */
void gpu_join_parts(gpu_maker *m, int kind, size_t part, int64_t n_parts, int64_t n, int64_t n_along, int i_out);
/* The next launches: output i_out [n], which is f32, is the sum of parts f32 [n_parts,n] at that place of the scratch
 * memory. */
void gpu_sum_parts(gpu_maker *m, size_t part, int64_t n_parts, int64_t n, int i_out);

#endif

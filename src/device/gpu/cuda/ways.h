/* How one of several ways of a library is chosen: what choice.c and convolution_choice.c share. */
#ifndef STK_DEVICE_GPU_CUDA_WAYS_H
#define STK_DEVICE_GPU_CUDA_WAYS_H

#include "device/gpu/cuda/cuda.h"

/* Enqueues way i; the same memory each time. */
typedef stk_status (*cuda_run_way)(void *user, int i, cu_stream stream);

/* The fastest of n on this chip, each run a few times after one that loads its kernel; an earlier one where the gain is
 * less than what such times vary by. Waits. */
stk_status cuda_measure_ways(gpu_context *context, int n, cuda_run_way run, void *user, int *best);
/* Types that the libraries are asked for: f32 and 16 bits, with results of the same type or in f32. */
bool cuda_has_types(int32_t dtype, int32_t dtype_out);

#endif

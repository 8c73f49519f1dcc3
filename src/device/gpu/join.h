/* Neighbours in a list of launches that can be one: what gpu_slots of gpu.h allows. */
#ifndef STK_DEVICE_GPU_JOIN_H
#define STK_DEVICE_GPU_JOIN_H

#include "device/gpu/gpu.h"

/* Of a launch in the list: what it is made of. */
typedef struct gpu_joined {
    const gpu_launch *launch; /* its first slot's */
    int n_used;               /* slots; 1 from the start */
    char sizes[GPU_SLOTS * sizeof(int64_t)];
} gpu_joined;

/* Adds `next`, a binding of `launch`, to the launch `into` before it, whose arguments are argument[]; false, and
 * nothing changed, where the two are not to be one. */
bool gpu_join(gpu_joined *to, gpu_bound_launch *into, gpu_argument *argument, const gpu_launch *launch,
              const gpu_bound_launch *next);

#endif

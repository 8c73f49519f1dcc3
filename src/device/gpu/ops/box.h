/* Boxes: elements of one array that go to places of another, axis by axis. */
#ifndef STK_DEVICE_GPU_OPS_BOX_H
#define STK_DEVICE_GPU_OPS_BOX_H

#include "device/gpu/gpu.h"

/* Begin with zeros and the bytes of an element. */
typedef struct gpu_box {
    size_t unit_bytes;
    int n_axes;
    int64_t size[STK_MAX_RANK], src[STK_MAX_RANK], dst[STK_MAX_RANK]; /* src, dst: strides in units */
    int64_t src_first, dst_first;
} gpu_box;

/* The next axis, from the outside; it becomes one with the one before where both sides go on there. */
void gpu_add_axis(gpu_box *box, int64_t size, int64_t src, int64_t dst);
/* The next launch: the box of input i_in goes to output i_out. None for a box of nothing. */
void gpu_copy_box(gpu_maker *m, gpu_box box, int i_in, int i_out);
/* The largest unit that divides n_bytes, up to 16: "4" of unit_4. */
size_t gpu_unit_of(size_t n_bytes);

#endif

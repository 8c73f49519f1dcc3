/* Launches that several normalisations share: kernels/norm_columns.dev. */
#ifndef STK_DEVICE_GPU_OPS_NORM_H
#define STK_DEVICE_GPU_OPS_NORM_H

#include "device/gpu/ops/columns.h"

/* Where the statistics of an element stand. */
typedef enum gpu_norm_by { GPU_BY_COLUMN = 1, GPU_BY_ROW, GPU_BY_GROUP } gpu_norm_by;

typedef struct gpu_norm_settings {
    stk_dtype dtype;
    gpu_norm_by by;
    bool relu, residual, adds;
} gpu_norm_settings;

/* The next launch: a kernel of norm_columns.dev, whose memory comes next. */
void gpu_add_norm(gpu_maker *m, const char *kernel, const gpu_norm_settings *s, const gpu_columns *columns);
/* The next launch: means and sums of squared distances of x, input 0, in parts [2][n_parts,n_outer,n_columns]. Returns
 * where they are in scratch memory. */
size_t gpu_add_measure(gpu_maker *m, const gpu_columns *columns);
/* Room for such parts. */
size_t gpu_take_parts(gpu_maker *m, const gpu_columns *columns);

#endif

/* The taps of a bilinear filter along one axis: which inputs count for each output, and how much.
 *
 * Half-pixel centres. Without antialiasing two inputs are mixed, as tf.image.resize and OpenCV do; with it the triangle
 * widens by the scale when shrinking, as PIL does. Source of the filter: Pillow, "Resample.c" (documented behaviour).
 */
#ifndef STK_DATA_STAGE_TAPS_H
#define STK_DATA_STAGE_TAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stk_axis {
    int64_t n_in, n_out;      /* the whole axis before and after */
    int64_t from, n;          /* the outputs that are made */
    bool antialias, mirrored; /* mirrored: output `from` comes last */
} stk_axis;

/* At most that many inputs count for an output. */
int64_t stk_axis_most_taps(const stk_axis *axis);
/* Output number i of the n: its inputs are [*first, *first + the result), within [0, n_in); weight [most]. The weights'
 * sum is 1. */
int64_t stk_axis_taps(const stk_axis *axis, int64_t i, int64_t *first, float *weight);

#endif

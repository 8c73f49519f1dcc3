/* The taps of a filter along one axis: which inputs count for each output, and how much.
 *
 * Half-pixel centres. Bilinear: without antialiasing two inputs are mixed, as tf.image.resize and OpenCV do; with it
 * the triangle widens by the scale when shrinking, as PIL does. Bicubic: Keys' cubic with a = -0.5 over four inputs, or
 * wider; what lies outside of the axis does not count. As OpenCV has it, a is -0.75 and the outermost inputs go on
 * outside. Nearest: the input under the centre; as OpenCV has it, the one under the left edge. Positions are rounded as
 * each system rounds them: TensorFlow in f32, with its cubic from a table; Pillow's nearest by adding up steps.
 * Sources: Pillow, "Resample.c" (documented behaviour); Keys, "Cubic convolution interpolation", 1981.
 */
#ifndef STK_DATA_STAGE_TAPS_H
#define STK_DATA_STAGE_TAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/data/dataset.h"

/* How an image is resized. */
typedef struct stk_sampling {
    stk_filter filter;
    stk_resize_like like;
    int32_t antialias; /* bool: the filter widens when shrinking; without padding, see stk_stage_class */
} stk_sampling;

typedef struct stk_axis {
    int64_t n_in, n_out; /* the whole axis before and after */
    int64_t from, n;     /* the outputs that are made */
    stk_sampling how;
    bool flipped; /* output `from` comes last */
} stk_axis;

/* At most that many inputs count for an output. */
int64_t stk_axis_most_taps(const stk_axis *axis);
/* Of each of the n outputs: its inputs are [first[i], first[i] + count[i]), within [0, n_in); weight [n, most taps].
 * The weights' sum is 1. */
void stk_axis_taps(const stk_axis *axis, int32_t *first, int32_t *count, float *weight);

#endif

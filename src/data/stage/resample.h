/* Bilinear resizing of a rectangle of an image, for resize and random_resized_crop.
 *
 * Half-pixel centres. Without antialiasing two pixels on each axis are mixed, as tf.image.resize and OpenCV do; with it
 * the triangle widens by the scale when shrinking, as PIL does. Two passes: columns, then rows. u8 results are rounded
 * once at the end of each pass, as PIL's are. Every value is within 1 of PIL's: PIL works in fixed point, which decides
 * ties otherwise (about one value in a hundred), and Pillow 13 takes rows first where one side grows and the other
 * shrinks a lot. Source of the filter: Pillow, "Resample.c" (its documented behaviour).
 */
#ifndef STK_DATA_STAGE_RESAMPLE_H
#define STK_DATA_STAGE_RESAMPLE_H

#include "data/stage/stage.h"

typedef struct stk_rectangle {
    int64_t top, left, height, width;
} stk_rectangle;

/* dst (its type is set: same channels and dtype, u8 or f32) from the rectangle of src, which lies inside of it. Pixels
 * outside of the rectangle are not read. */
stk_status stk_resample(const stk_item *src, stk_rectangle from, bool antialias, stk_item *dst, stk_scratch *scratch);

#endif

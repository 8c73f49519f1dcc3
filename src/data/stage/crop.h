/* Copying a rectangle out of an image of any element type, for the cropping stages. */
#ifndef STK_DATA_STAGE_CROP_H
#define STK_DATA_STAGE_CROP_H

#include "data/stage/stage.h"

/* dst gets the rectangle of its own size whose corner lies at (top, left) of src; what lies outside of src is 0. */
void stk_copy_rectangle(const stk_item *src, int64_t top, int64_t left, stk_item *dst);
/* The same where what lies outside is src reflected at its outermost pixels: column -1 is column 1. The rectangle
 * sticks out by less than src's sides. */
void stk_copy_rectangle_reflected(const stk_item *src, int64_t top, int64_t left, stk_item *dst);

#endif

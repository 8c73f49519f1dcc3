/* A view of an image that is still encoded: what neighbouring stages (crops, one resize, flips, normalisation) make of
 * it together, so that they can run as one pass over its rows (data/stage/row_pass.h) instead of one after the other.
 *
 * Each call below says what one more stage does. It gives false, and changes nothing, where the stages so far and this
 * one cannot be one pass with the same result to the bit; the stage then runs by itself.
 */
#ifndef STK_DATA_STAGE_VIEW_H
#define STK_DATA_STAGE_VIEW_H

#include <stdbool.h>

#include "data/codec/image.h"
#include "data/stage/taps.h"

enum { STK_VIEW_CHANNELS = 4 };

typedef struct stk_view {
    int64_t image_height, image_width; /* of the decoded image */
    int64_t height, width;             /* of the result */
    stk_rect from;                     /* part of the image; what sticks out of it is 0 */
    bool padded;                       /* some of it may stick out */
    bool resized;                      /* from is resized to to_height x to_width, of which `keep` remains */
    stk_sampling how;
    int64_t to_height, to_width;
    stk_rect keep;
    bool flipped; /* the result, left-right */
    bool is_f32;  /* each value x becomes x * a[c] + b[c]; otherwise it stays u8 */
    float a[STK_VIEW_CHANNELS], b[STK_VIEW_CHANNELS];
} stk_view;

/* The whole image. */
void stk_view_init(stk_view *view, int64_t height, int64_t width);
/* A part of the result so far, beyond whose sides are zeros. */
bool stk_view_crop(stk_view *view, stk_rect part);
/* u8 that stays u8. */
bool stk_view_resize(stk_view *view, int64_t height, int64_t width, stk_sampling how);
bool stk_view_flip(stk_view *view);
/* a, b [channels] */
bool stk_view_affine(stk_view *view, const float *a, const float *b, int channels);

#endif

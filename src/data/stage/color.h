/* Colour operations on u8 pixels [n, channels], as torchvision's v2 functions define them: each works in f32 and cuts
 * its result to whole numbers within 0..255. Grey images (one channel) have no saturation, hue or greyscale: those do
 * nothing. Threads: any; nothing is shared. All processors give the same.
 */
#ifndef STK_DATA_STAGE_COLOR_H
#define STK_DATA_STAGE_COLOR_H

#include <stdint.h>

typedef enum stk_color_kind {
    STK_COLOR_BRIGHTNESS, /* x * amount */
    STK_COLOR_CONTRAST,   /* amount of x, the rest of the image's mean grey */
    STK_COLOR_SATURATION, /* amount of x, the rest of its grey */
    STK_COLOR_HUE,        /* turned by amount of the circle, -0.5 to 0.5 */
    STK_COLOR_GRAYSCALE   /* .2989 R + .587 G + .114 B in all channels; no amount */
} stk_color_kind;

typedef struct stk_color_op {
    stk_color_kind kind;
    float amount;
} stk_color_op;

/* In this order. channels: 1 or 3. dst may be src. */
void stk_color_apply(const stk_color_op *op, int n_ops, const uint8_t *src, uint8_t *dst, int64_t n, int channels);

#endif

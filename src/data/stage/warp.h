/* Affine transforms of u8 images [H,W,C], as torchvision's v2 functions on tensors define them: places are told from
 * the image's middle, outputs keep the image's size, and what lies outside of the image has the fill's value. Bilinear
 * pixels at the edge are mixed with the fill once; torchvision mixes them twice where it is given a fill.
 *
 * Places are fixed-point numbers with 32 bits of fraction, weights have 14 bits, so that every processor gives the
 * same. Threads: any.
 */
#ifndef STK_DATA_STAGE_WARP_H
#define STK_DATA_STAGE_WARP_H

#include <stdint.h>

#include "stoker/data/dataset.h"

/* Output (x, y) is taken from input (xx x + xy y + x0, yx x + yy y + y0), both from the middle. */
typedef struct stk_warp {
    double xx, xy, x0;
    double yx, yy, y0;
} stk_warp;

/* Turned clockwise by angle, sheared (all in degrees), scaled, then moved; (centre_x, centre_y) stays but for the move.
 */
typedef struct stk_warp_config {
    double angle, move_x, move_y, scale, shear_x, shear_y, centre_x, centre_y;
} stk_warp_config;
stk_warp stk_warp_make(const stk_warp_config *config);

/* filter: nearest or bilinear. dst is not src. */
void stk_warp_apply(const stk_warp *warp, stk_filter filter, uint8_t fill, const uint8_t *src, uint8_t *dst,
                    int64_t height, int64_t width, int channels);

#endif

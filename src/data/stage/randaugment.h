/* The operations that randaugment draws from, one at a time: for the stage, and for its test. */
#ifndef STK_DATA_STAGE_RANDAUGMENT_H
#define STK_DATA_STAGE_RANDAUGMENT_H

#include <stdint.h>

/* torchvision's, in its order. */
typedef enum stk_augment_kind {
    STK_AUGMENT_IDENTITY,
    STK_AUGMENT_SHEAR_X,
    STK_AUGMENT_SHEAR_Y,
    STK_AUGMENT_TRANSLATE_X,
    STK_AUGMENT_TRANSLATE_Y,
    STK_AUGMENT_ROTATE,
    STK_AUGMENT_BRIGHTNESS,
    STK_AUGMENT_COLOR,
    STK_AUGMENT_CONTRAST,
    STK_AUGMENT_SHARPNESS,
    STK_AUGMENT_POSTERIZE,
    STK_AUGMENT_SOLARIZE,
    STK_AUGMENT_AUTOCONTRAST,
    STK_AUGMENT_EQUALIZE,
    STK_N_AUGMENTS
} stk_augment_kind;

/* What a magnitude of 0 to 30 means to an operation; without its sign. */
double stk_augment_amount(stk_augment_kind kind, int magnitude, int64_t height, int64_t width);
/* u8 [height, width, channels], channels 1 or 3. dst is not src. */
void stk_augment_apply(stk_augment_kind kind, double amount, const uint8_t *src, uint8_t *dst, int64_t height,
                       int64_t width, int channels);

#endif

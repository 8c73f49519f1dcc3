/* Operations on the values of u8 images [H,W,channels], as torchvision's v2 functions define them. channels: 1 or 3 for
 * what goes by channel. Threads: any. dst may be src, unless said otherwise. */
#ifndef STK_DATA_STAGE_TONE_H
#define STK_DATA_STAGE_TONE_H

#include <stdint.h>

/* The highest `bits` bits (0 to 8) of n values. */
void stk_tone_posterize(int bits, const uint8_t *src, uint8_t *dst, int64_t n);
/* Values from threshold on are inverted; 256: none. */
void stk_tone_solarize(int threshold, const uint8_t *src, uint8_t *dst, int64_t n);
/* Each channel is spread over 0..255; n pixels. */
void stk_tone_autocontrast(const uint8_t *src, uint8_t *dst, int64_t n, int channels);
/* Each channel's values are made about equally frequent, as PIL does it; n pixels. */
void stk_tone_equalize(const uint8_t *src, uint8_t *dst, int64_t n, int channels);
/* amount of the image, the rest of a blurred one; 1 changes nothing. The outermost pixels stay. dst is not src. */
void stk_tone_sharpness(double amount, const uint8_t *src, uint8_t *dst, int64_t height, int64_t width, int channels);

#endif

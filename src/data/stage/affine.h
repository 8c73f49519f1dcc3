/* x * a[c] + b[c] for the channels of an image's pixels, as f32. */
#ifndef STK_DATA_STAGE_AFFINE_H
#define STK_DATA_STAGE_AFFINE_H

#include <stdint.h>

/* A multiple of 1, 2, 3 and 4 channels that fills whole vectors. */
enum { STK_AFFINE_PERIOD = 48 };

typedef struct stk_affine {
    float a[STK_AFFINE_PERIOD], b[STK_AFFINE_PERIOD]; /* of value i: number i % STK_AFFINE_PERIOD */
} stk_affine;

/* a, b [channels], channels 1 to 4 */
void stk_affine_init(stk_affine *affine, const float *a, const float *b, int channels);
/* n values, beginning with channel 0. */
void stk_affine_u8(const stk_affine *affine, const uint8_t *src, float *dst, int64_t n);
void stk_affine_f32(const stk_affine *affine, const float *src, float *dst, int64_t n); /* dst may be src */

#endif

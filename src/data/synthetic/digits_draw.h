/* Draws one handwritten-like digit. No files here; digits.c writes them. */
#ifndef STK_DATA_SYNTHETIC_DIGITS_DRAW_H
#define STK_DATA_SYNTHETIC_DIGITS_DRAW_H

#include <stdint.h>

#include "base/rng.h"

/* dst [size,size]: light ink on a dark ground. scratch [2,size,size] is overwritten. Everything that varies comes from
 * rng, so that the same rng gives the same picture. digit 0..9. Threads: any. */
void stk_digit_draw(int digit, stk_rng *rng, int size, uint8_t *dst, float *scratch);

#endif

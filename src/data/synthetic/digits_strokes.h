/* How people write the ten digits: for each, some templates of strokes. Tables only; digits_draw.c draws them. */
#ifndef STK_DATA_SYNTHETIC_DIGITS_STROKES_H
#define STK_DATA_SYNTHETIC_DIGITS_STROKES_H

#include <stdint.h>

/* x to the right and y down in a box of 0..100; a smooth curve runs through the points of a stroke, a point given twice
 * is a corner. x == STK_PEN_UP ends a stroke. */
enum { STK_PEN_UP = 255, STK_GLYPH_MAX_POINTS = 32 };
typedef struct stk_glyph_point {
    uint8_t x, y;
} stk_glyph_point;

typedef struct stk_glyph {
    int digit, n_points;
    const stk_glyph_point *point; /* a constant */
} stk_glyph;

/* The templates of a digit 0..9: n_variants of them, at least 1. Returns a constant. */
const stk_glyph *stk_glyphs_of(int digit, int *n_variants);

#endif

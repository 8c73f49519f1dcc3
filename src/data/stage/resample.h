/* Resizing of a rectangle of an image, for resize, random_resized_crop and rows of images as they are decoded.
 *
 * Two passes: columns, then rows; as Pillow 13 does, rows first where the height loses more than twice what the width
 * does. u8 is worked in fixed point with weights of 14 bits, so that every processor gives the same; with antialiasing
 * both passes round to u8, as PIL's do, otherwise only the second one. PIL has finer weights: docs/pixels.md says how
 * far values are from its own. Bicubic weights may be negative: both passes keep to 0..255 where they round. f32 is
 * worked in f32, and so is u8 that becomes f32. The filters: taps.h.
 */
#ifndef STK_DATA_STAGE_RESAMPLE_H
#define STK_DATA_STAGE_RESAMPLE_H

#include "data/codec/image.h"
#include "data/stage/stage.h"

/* dst (its type is set: same channels; u8 from u8, or f32 from either) from the rectangle of src, which lies inside of
 * it. Pixels outside of the rectangle are not read. */
stk_status stk_resample(const stk_item *src, stk_rect from, stk_sampling how, stk_item *dst, stk_scratch *scratch);

/* --- u8, row by row --- */

enum { STK_ROW_SLACK = 32 }; /* bytes after a row that may be read, whatever they are */

typedef struct stk_resample_config {
    int64_t height, width, channels; /* of what is resized */
    int64_t to_height, to_width;     /* what it becomes */
    stk_rect keep;                   /* the part of that which is made */
    stk_sampling how;
    bool flipped; /* the kept part, left-right */
} stk_resample_config;

/* Lies in scratch. Threads: one at a time. */
typedef struct stk_resampler stk_resampler;
stk_status stk_resampler_begin(const stk_resample_config *config, stk_scratch *scratch, stk_resampler **out);
/* The part of the input that counts. */
stk_rect stk_resampler_needs(const stk_resampler *resampler);

/* A place for one row of it and its slack, for the function below. */
uint8_t *stk_resampler_input(stk_resampler *resampler);

/* Gives row number i_row of that part. Called with rising numbers, some of which may be left out. The row must hold
 * until the next call, with STK_ROW_SLACK bytes after it. */
typedef stk_status (*stk_row_fn)(void *user, int64_t i_row, const uint8_t **row);
/* The next row of the result, [keep.width, channels]; holds until the next call, with STK_ROW_SLACK bytes after it. */
stk_status stk_resampler_row(stk_resampler *resampler, stk_row_fn read, void *user, const uint8_t **row);

/* For stk_resample: f32 results. */
stk_status stk_resample_f32(const stk_item *src, stk_rect from, stk_sampling how, stk_item *dst, stk_scratch *scratch);

#endif

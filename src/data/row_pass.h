/* One pass from encoded bytes to a row of the batch: decode, crop, resize, flip, normalise and cast run together, row
 * by row, with no image in between. Of a JPEG only the part that counts is decoded (data/codec/jpeg_crop.h).
 *
 * The result is that of the stages one after the other, to the bit. The one difference: damage to a JPEG beyond the
 * part that counts goes unseen.
 */
#ifndef STK_DATA_ROW_PASS_H
#define STK_DATA_ROW_PASS_H

#include "data/stage/stage.h"

/* A worker's memory. Starts zeroed. */
typedef struct stk_row_pass_work {
    stk_scratch image;  /* for files that are not decoded row by row */
    stk_scratch resize; /* the resampler */
    stk_scratch row;
    const struct stk_jpeg_entry *entry; /* of the next file, as in stk_scratch */
    int n_entries;
} stk_row_pass_work;
void stk_row_pass_work_free(stk_row_pass_work *work);

/* dst [view->height, view->width, channels], u8 or f32 as the view says. */
stk_status stk_row_pass_run(const stk_view *view, stk_span encoded, int channels, void *dst, stk_row_pass_work *work);

#endif

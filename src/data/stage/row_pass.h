/* One pass from encoded bytes to a row of the batch: decode, crop, resize, flip, normalise and cast run together, row
 * by row, with no image in between. Of a JPEG only the part that counts is decoded (data/codec/jpeg_crop.h).
 *
 * The result is that of the stages one after the other, to the bit. The one difference: damage to a JPEG beyond the
 * part that counts goes unseen.
 */
#ifndef STK_DATA_STAGE_ROW_PASS_H
#define STK_DATA_STAGE_ROW_PASS_H

#include "data/codec/jpeg_crop.h"
#include "data/stage/stage.h"

/* A worker's memory. Starts zeroed. */
typedef struct stk_row_pass_work {
    stk_scratch image;  /* for files that are not decoded row by row */
    stk_scratch resize; /* the resampler */
    stk_scratch row;
    stk_jpeg_hint hint;     /* of the next file, set by the caller for each */
    stk_scratch entries;    /* room for the entries of one file */
    stk_jpeg_index learned; /* of the last file, where an index wants them; n 0: nothing */
} stk_row_pass_work;
void stk_row_pass_work_free(stk_row_pass_work *work);

/* dst [view->height, view->width, channels], u8 or f32 as the view says. */
stk_status stk_row_pass_run(const stk_view *view, stk_span encoded, int channels, void *dst, stk_row_pass_work *work);

#endif

/* What stoker pack may do to an image on its way into a shard; see stoker/data/pack.h. Threads: any; a stk_remake_work
 * is one thread's own. */
#ifndef STK_DATA_PACK_REMAKE_H
#define STK_DATA_PACK_REMAKE_H

#include "data/codec/jpeg_crop.h"
#include "data/common/item.h"
#include "stoker/data/pack.h"

/* Starts zeroed. */
typedef struct stk_remake_work {
    stk_jpeg_reader *reader;
    stk_scratch pixels, resized, resize;
    uint8_t *made; /* the last image that was encoded again, malloc'ed */
} stk_remake_work;
void stk_remake_work_free(stk_remake_work *work);

/* *out is src itself, where nothing is to be done to it, or lies in work until the next call. Errors are the image's:
 * STK_CORRUPT and the like. */
stk_status stk_remake(stk_span src, const stk_pack_options *how, stk_remake_work *work, stk_span *out);
/* The entry points of a JPEG, malloc'ed: *n 0 where it has none, or is too small to gain by them. every: as
 * stk_jpeg_reader_index_size. */
stk_status stk_remake_entries(stk_span encoded, int every, stk_remake_work *work, stk_jpeg_entry **out, int *n);

#endif

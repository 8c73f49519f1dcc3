/* Values of a batch back to what a screen shows, 0 to 255. Threads: any. */
#ifndef STK_DATA_INSPECT_UNDO_H
#define STK_DATA_INSPECT_UNDO_H

#include "data/stage/chain.h"

typedef struct stk_undo {
    bool known; /* low and high come from the stages' constants; else each image's least and most value count */
    float low[STK_VIEW_CHANNELS], high[STK_VIEW_CHANNELS]; /* what 0 and 255 have become, by channel */
} stk_undo;

/* What a chain makes of 0 and of 255, as far as its stages work on each value alone or move values only. */
void stk_undo_init(stk_undo *undo, const stk_chain *chain, int channels);
/* A value of channel c, for an undo that is known. */
uint8_t stk_undo_value(const stk_undo *undo, int c, float x);

#endif

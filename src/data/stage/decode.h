/* What running a chain as one pass over rows must know of the stage 'decode'. */
#ifndef STK_DATA_STAGE_DECODE_H
#define STK_DATA_STAGE_DECODE_H

#include "base/file.h"

/* Whether this file's pixels are to be turned by its EXIF orientation. params are those of a stage 'decode'. */
bool stk_decode_turns(const void *params, stk_span encoded);

#endif

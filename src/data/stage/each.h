/* Stages for images [H,W,C] on arrays [T,H,W,C], slice by slice, all with the draws of the sample. */
#ifndef STK_DATA_STAGE_EACH_H
#define STK_DATA_STAGE_EACH_H

#include "data/stage/stage.h"

/* Takes stage. Where it fits the slices of this type and not the whole, what is returned runs it on each slice;
 * otherwise it is stage itself. Never NULL. */
stk_stage *stk_stage_for(stk_stage *stage, const stk_field_type *in);

#endif

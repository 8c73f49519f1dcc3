/* Which element type training computes in. What is cast where is pass autocast's. */
#ifndef STK_TRAIN_PRECISION_H
#define STK_TRAIN_PRECISION_H

#include "stoker/train/trainer.h"

/* "f32", "bf16", "f16", "auto", "tf32". A constant. */
const char *stk_precision_name(stk_precision precision);
/* Settles `auto` and warns where the device is slow in what is wanted. The engine is open. */
stk_status stk_trainer_choose_precision(stk_trainer *trainer);

/* After step number `step` (from 1): notes the loss scale and the steps that it skipped. Fails, with an explanation,
 * when the scale only falls. loss: of the step. */
stk_status stk_trainer_watch_scale(stk_trainer *trainer, int64_t step, double loss);

#endif

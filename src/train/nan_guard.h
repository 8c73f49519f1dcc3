/* What becomes of a step whose loss or gradients are not finite: the run ends and says where, or the step is skipped.
 * Threads: the trainer's.
 */
#ifndef STK_TRAIN_NAN_GUARD_H
#define STK_TRAIN_NAN_GUARD_H

#include "stoker/train/trainer.h"

/* How many steps in a row may be skipped. */
enum { STK_MOST_SKIPPED = 20 };

/* Whether the step counts in the means of its epoch. */
bool stk_nan_counts(const stk_trainer *trainer, double loss);

/* A step's results have been read. With on_nan: stop, a loss that is not finite is STK_INVALID, with the step, the
 * losses and the parameter nearest the loss that is no longer finite. With skip, only STK_MOST_SKIPPED such steps in a
 * row are. Where the loss scale is dynamic, that decides instead. */
stk_status stk_nan_watch(stk_trainer *trainer, int64_t step, double loss, double lr);

#endif

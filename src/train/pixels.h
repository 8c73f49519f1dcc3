/* Images that go to the device as u8, where it is not on the host: see data/dataset/pixels.h and
 * passes/unpack_pixels.c. */
#ifndef STK_TRAIN_PIXELS_H
#define STK_TRAIN_PIXELS_H

#include "train/trainer_state.h"

/* Decides whether the training data's images do. After the engine is open, before anything is compiled. */
stk_status stk_trainer_choose_fed(stk_trainer *trainer);
/* Whether this data set's images can go so, too, by the same factors. */
bool stk_trainer_takes_u8(const stk_trainer *trainer, const stk_dataset *dataset);
/* *out: the data set without its last stage, which it borrows from: free() it. NULL where it does not take u8. */
stk_status stk_trainer_cut_pixels(const stk_trainer *trainer, const stk_dataset *dataset, stk_dataset **out);

#endif

/* First weights from a file or another run. */
#ifndef STK_TRAIN_RUN_INIT_H
#define STK_TRAIN_RUN_INIT_H

#include "train/run_state.h"

/* Does what the recipe's `init` says, and tells what was loaded and what was not. The trainer is prepared. */
stk_status stk_run_init_weights(stk_run *run);

#endif

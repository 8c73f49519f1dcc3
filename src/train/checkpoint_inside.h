/* What saving and loading of checkpoints share. */
#ifndef STK_TRAIN_CHECKPOINT_INSIDE_H
#define STK_TRAIN_CHECKPOINT_INSIDE_H

#include "train/trainer.h"

/* True for "<name of another tensor>.velocity", ".m" and ".v". */
bool stk_is_optimizer_state(const stk_named_tensor *tensors, size_t n, const char *name);
/* The step numbers of the folders step-N in run_dir, smallest first, the newest `most` of them; returns how many. */
int stk_checkpoint_list(const char *run_dir, int64_t *steps, int most);
/* What the file `best` names; -1: none. */
int64_t stk_checkpoint_best_step(const char *run_dir);
/* A save of a step that existed, killed between its two renames, left the old folder as `.old`: put it back. */
stk_status stk_checkpoint_restore_renamed(const char *run_dir);

#endif

/* What saving and loading of checkpoints share. */
#ifndef STK_WEIGHTS_CHECKPOINT_INSIDE_H
#define STK_WEIGHTS_CHECKPOINT_INSIDE_H

#include "weights/train_state.h"

/* True for "<name of another tensor>.velocity", ".m" and ".v". */
bool stk_is_optimizer_state(const stk_named_tensor *tensors, size_t n, const char *name);
/* The step numbers of the folders step-N in run_dir, smallest first, the newest `most` of them; returns how many. One
 * that stk_checkpoint_renamed tells of is among them. */
int stk_checkpoint_list(const char *run_dir, int64_t *steps, int most);
/* What the file `best` names; -1: none. */
int64_t stk_checkpoint_best_step(const char *run_dir);
/* STK_OK for a folder whose files agree with its manifest. */
stk_status stk_checkpoint_check(const char *dir);

/* --- checkpoint_keep.c --- */

/* A save of a step that existed, killed between its two renames, left the older one as `.old`, and no step-N. */
bool stk_checkpoint_renamed(const char *run_dir, int64_t *step);
/* Gives it its name again. Only for who has the run's lock. */
stk_status stk_checkpoint_restore_renamed(const char *run_dir);
/* The folder of a step: step-N, or `.old` where that is it. */
stk_status stk_checkpoint_path(const char *run_dir, int64_t step, char *path, size_t path_bytes);

/* Removes a checkpoint's files and folder, the manifest first. STK_BUSY, with nothing removed, where it holds anything
 * else. No error where there is none. */
stk_status stk_checkpoint_remove(const char *dir);
/* Whatever else it holds goes to another folder. */
stk_status stk_checkpoint_move_foreign(const char *from, const char *to);
/* What saves and removals that were killed left behind. */
stk_status stk_checkpoint_remove_leftovers(const char *run_dir);

/* Steps that are known for whole. Zeros: none. */
typedef struct stk_checkpoint_known {
    int64_t *step; /* [n], free() */
    int n, room;
} stk_checkpoint_known;
void stk_checkpoint_note(stk_checkpoint_known *known, int64_t step);
/* After `saved` was written: of that and the earlier ones the newest `keep` that are whole stay, and the best one, and
 * each with something else in its folder. Later ones stay, too. */
void stk_checkpoint_retire(const char *run_dir, int keep, int64_t saved, stk_checkpoint_known *known);

#endif

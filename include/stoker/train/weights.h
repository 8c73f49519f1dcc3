/* The weights of a trainer or a session by name: read, set, saved and loaded; and a trainer's checkpoints.
 *
 * Weights are the parameters and running statistics, under the names that layers give them ("dense.weight",
 * "scope.conv2d.bias"), sorted by name; what optimisers keep is none. A trainer compiles its step at the first of these
 * calls, if it has not run yet. Where a mean of the weights is kept, setting a weight sets its raw one, too.
 *
 * Handles and texts that are NULL are STK_INVALID. Threads: one at a time for each trainer or session, and not while it
 * runs.
 */
#ifndef STOKER_TRAIN_WEIGHTS_H
#define STOKER_TRAIN_WEIGHTS_H

#include "stoker/graph/session.h"
#include "stoker/train/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_weight_info {
    const char *name; /* borrowed from the trainer or session */
    stk_dtype dtype;
    stk_shape shape;
    size_t n_bytes;
} stk_weight_info;

/* Weight number i >= 0. STK_NO_ROW past the last one. Those of a session are the ones that its steps compiled so far
 * have. */
STK_API stk_status stk_trainer_weight(stk_trainer *trainer, int64_t i, stk_weight_info *out);
STK_API stk_status stk_session_weight(stk_session *session, int64_t i, stk_weight_info *out);

/* All of one weight, row-major in its own dtype: dst and src have n_bytes, which must be the weight's. STK_NOT_FOUND
 * names the nearest name. */
STK_API stk_status stk_trainer_get_weight(stk_trainer *trainer, const char *name, void *dst, size_t n_bytes);
STK_API stk_status stk_trainer_set_weight(stk_trainer *trainer, const char *name, const void *src, size_t n_bytes);
STK_API stk_status stk_session_get_weight(stk_session *session, const char *name, void *dst, size_t n_bytes);
STK_API stk_status stk_session_set_weight(stk_session *session, const char *name, const void *src, size_t n_bytes);

/* All weights as one file of safetensors, with these names and layouts. It appears whole or not at all; STK_BUSY where
 * a file of another kind is there. */
STK_API stk_status stk_trainer_save_weights(stk_trainer *trainer, const char *path);
STK_API stk_status stk_session_save_weights(stk_session *session, const char *path);
/* From a file in safetensors: one of these, or with the names and layouts of PyTorch, as stk_run_import takes it.
 * leave: parts of names, comma-separated, of weights that stay as they are; NULL: none. STK_MISMATCH names both sides
 * of what does not fit, and of what the file lacks; nothing is changed then. */
STK_API stk_status stk_trainer_load_weights(stk_trainer *trainer, const char *path, const char *leave);
STK_API stk_status stk_session_load_weights(stk_session *session, const char *path, const char *leave);

/* A checkpoint, FOLDER/step-N: weights, the optimiser's state and where the training stands. The folder is made where
 * it is not there; the newest `keep` (2 or more) checkpoints in it stay, and older ones are removed. STK_UNSUPPORTED
 * while the optimiser's state is shared out among ranks. */
STK_API stk_status stk_trainer_save_checkpoint(stk_trainer *trainer, const char *folder, int keep);
/* The newest whole checkpoint of the folder: stk_trainer_run then goes on there, with the bits of a training that had
 * not stopped. The trainer must be made alike: model, data, optimiser, seed. STK_NOT_FOUND: there is none; STK_CORRUPT:
 * none is whole. */
STK_API stk_status stk_trainer_load_checkpoint(stk_trainer *trainer, const char *folder);

#ifdef __cplusplus
}
#endif
#endif

/* The trainer's inside, for what saves and tells: its tensors and state, and hooks around the loop. */
#ifndef STK_TRAIN_TRAINER_H
#define STK_TRAIN_TRAINER_H

#include "base/text.h"
#include "stoker/data/loader.h"
#include "stoker/train/trainer.h"
#include "weights/train_state.h"

/* Compiles if that has not happened yet, so that tensors and state exist. Does nothing when called again. */
stk_status stk_trainer_prepare(stk_trainer *trainer, int64_t n_epochs);
/* How kernels were chosen by timing (device/device.h), as text, appended; and that of an earlier run with which this
 * one is to have the same bits, before prepare. */
void stk_trainer_print_choices(const stk_trainer *trainer, stk_text *out);
stk_status stk_trainer_keep_choices(stk_trainer *trainer, const char *text);
/* All variables (parameters, running statistics, optimiser state) as they are now, sorted by name; valid after prepare.
 * Waits. Where the device is not on the host these are copies, brought up to date by this call. */
stk_status stk_trainer_tensors(stk_trainer *trainer, const stk_named_tensor **out, size_t *n);
/* Takes over what was written into the tensors; steps before this may use the old content. */
stk_status stk_trainer_put_tensors(stk_trainer *trainer);
/* The gradient of the parameter of that name in the last step read, where the config keeps gradients; NULL: there is
 * none. Borrowed until the next step or validation. */
const float *stk_trainer_gradient(const stk_trainer *trainer, const char *name, size_t *n);
/* Of config.memory_limit_bytes, what the input pipeline leaves to the programs and a checkpoint's copy; 0: no limit.
 * Known once the step was planned. */
size_t stk_trainer_step_limit(const stk_trainer *trainer);
/* What all programs together take, themselves included. */
size_t stk_trainer_planned(const stk_trainer *trainer);
/* What others will hold of the limit, before the first loader: a checkpoint's copy; data sets that are not among the
 * trainer's. */
void stk_trainer_count_copy(stk_trainer *trainer, size_t bytes);
void stk_trainer_count_held(stk_trainer *trainer, size_t bytes);
/* Another view of the training data, which errors of its evaluation then call train. Borrowed; NULL: none. */
void stk_trainer_set_whole(stk_trainer *trainer, const stk_dataset *whole);
/* Before tensors are filled from a checkpoint: those whose parts lie on several ranks get memory for the whole, until
 * the next run deals it out. On the first rank alone. */
stk_status stk_trainer_make_room(stk_trainer *trainer);
/* True where the results of all steps begun are in the state, and every tensor can be read: in after_step, where
 * wants_state asked for it, and always where the device is on the host and no state is shared out among ranks. */
bool stk_trainer_is_settled(const stk_trainer *trainer);
/* The training data as batches hold them: images may go to the device as u8. Borrowed. */
const stk_dataset *stk_trainer_batches_of(const stk_trainer *trainer);
void stk_trainer_get_state(const stk_trainer *trainer, stk_train_state *out);
/* After tensors' contents were set from a checkpoint, and put: goes on there. */
stk_status stk_trainer_set_state(stk_trainer *trainer, const stk_train_state *state);
/* What had been skipped when the checkpoint was saved counts on. */
stk_status stk_trainer_load_skipped(stk_trainer *trainer, const char *checkpoint);

/* after_step: the results of a step have been read. Where the device is not on the host, later steps may have begun by
 * then, so that parameters and state (stk_trainer_is_settled) agree only at those steps that wants_state asked for.
 * after_epoch: validation is done (improved: it is the best so far), and they agree. A failure ends the run with that
 * status. at_end: the run ends with STK_OK or STK_INTERRUPTED; called where state is shared out
 * among ranks, which can be read there for the last time. NULL: none. */
typedef struct stk_trainer_hooks {
    void (*on_batch)(void *user, const stk_batch *batch); /* a step is about to begin on it; NULL: none */
    bool (*wants_state)(void *user, int64_t step); /* a step begins: shall it be settled in after_step? NULL: no */
    stk_status (*after_step)(void *user, stk_trainer *trainer, const stk_train_event *event);
    stk_status (*after_epoch)(void *user, stk_trainer *trainer, const stk_train_event *event, bool improved);
    void (*at_end)(void *user, stk_trainer *trainer, stk_status status);
    void *user;
} stk_trainer_hooks;
void stk_trainer_set_hooks(stk_trainer *trainer, const stk_trainer_hooks *hooks);

/* Before the trainer is prepared: it is one of comm's ranks, whose trainers are made alike. Borrowed. */
struct stk_comm;
void stk_trainer_set_comm(stk_trainer *trainer, struct stk_comm *comm);
/* It marks there what it does: elastic/beat.h. Borrowed; NULL. */
struct stk_beat;
void stk_trainer_set_beat(stk_trainer *trainer, struct stk_beat *beat);

/* STK_NO_MEMORY: stk_trainer_new had none, and has freed the model and the data set that it took; or the configuration
 * could not be kept. */
stk_status stk_trainer_status(const stk_trainer *trainer);

#endif

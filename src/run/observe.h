/* What a run tells TensorBoard while it trains: event files in RUN/events. Nothing here stops a run: what cannot be
 * written is one warning. Threads: the trainer's, one at a time.
 */
#ifndef STK_RUN_OBSERVE_H
#define STK_RUN_OBSERVE_H

#include "data/inspect/picture.h"
#include "events/event_file.h"
#include "recipe/recipe.h"
#include "train/trainer.h"

typedef struct stk_observer {
    stk_event_file *file; /* NULL: not wanted, or given up */
    const stk_recipe *recipe;
    stk_status failed;                  /* the first failure */
    uint32_t seen;                      /* bit i: scalar i has had its first value in this file */
    bool has_histograms, has_gradients; /* their first values are written */
    bool wants_images;                  /* they are still to come */
    int64_t n_batches;                  /* seen by on_batch */
} stk_observer;

/* RUN/events as the recipe wants it, going on behind that step. With the recipe's text and the model's graph. */
stk_status stk_observe_open(const char *folder, int64_t step, const stk_recipe *recipe, const char *recipe_text,
                            stk_trainer *trainer, stk_observer *out);
void stk_observe_close(stk_observer *observer);
/* A step or an epoch of the log. The first call that fails returns why, and closes the file. */
stk_status stk_observe_event(stk_observer *observer, const stk_train_event *event);
/* The end of an epoch: histograms of parameters, where they are wanted. */
stk_status stk_observe_parameters(stk_observer *observer, stk_trainer *trainer, int64_t step);
/* The last step of an epoch, before its validation: histograms of gradients, where they are wanted. */
stk_status stk_observe_gradients(stk_observer *observer, stk_trainer *trainer, int64_t step);
/* A batch of that data set, which is about to be trained on. */
stk_status stk_observe_batch(stk_observer *observer, const stk_dataset *dataset, const stk_batch *batch);

#endif

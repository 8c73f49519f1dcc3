/* Batches of different shapes in one training: padded to the longest of each, or buckets of samples of like length.
 *
 *   batch [N,T] --> is there a program for (N, T)? --> no: the model for length T, compiled once --> run
 *
 * All programs share the engine's variables and its arena, which is as large as the largest of them needs; that one is
 * compiled before the run, so that a plan that does not fit is refused then. Threads: the trainer's.
 */
#ifndef STK_TRAIN_SHAPES_H
#define STK_TRAIN_SHAPES_H

#include "train/trainer_state.h"

/* Whether a field's length is each batch's own. */
static inline bool stk_shapes_is_open(const stk_dataset *dataset, int i_field)
{
    return dataset->pad[i_field].on && !dataset->pad[i_field].fixed;
}

/* Whether batches of the data set differ in rows or in length. */
bool stk_shapes_vary(const stk_dataset *dataset);

/* The rows and the length of the largest batch. A length of 0: no field has an open side. */
void stk_shapes_largest(const stk_dataset *dataset, int64_t *rows, int64_t *length);

/* Compiles the largest of the training data as trainer->train. */
stk_status stk_shapes_prepare(stk_trainer *trainer);

/* Makes trainer->train, or trainer->eval for a batch of dataset, the program for the batch's shape. */
stk_status stk_shapes_pick_train(stk_trainer *trainer, const stk_batch *batch);
stk_status stk_shapes_pick_eval(stk_trainer *trainer, const stk_dataset *dataset, const stk_batch *batch);

void stk_shapes_free(stk_shapes *shapes);

#endif

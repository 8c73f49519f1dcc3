/* Batches of different shapes in one training: padded to the longest of each, or buckets of samples of like length.
 *
 *   batch [N,T] --> is there a program for (N, T)? --> no: the model for length T, compiled once --> run
 *
 * All programs share the engine's variables and its arena, which is as large as the largest of them needs; that one is
 * compiled before the run, so that a plan that does not fit is refused then. Threads: the trainer's.
 */
#ifndef STK_TRAIN_SHAPES_H
#define STK_TRAIN_SHAPES_H

#include "train/batch_shapes.h"
#include "train/trainer_state.h"

/* Compiles the largest of the training data as trainer->train. */
stk_status stk_shapes_prepare(stk_trainer *trainer);

/* Makes trainer->train, or trainer->eval for a batch of dataset, the program for the batch's shape. */
stk_status stk_shapes_pick_train(stk_trainer *trainer, const stk_batch *batch);
stk_status stk_shapes_pick_eval(stk_trainer *trainer, const stk_dataset *dataset, const stk_batch *batch);

void stk_shapes_free(stk_shapes *shapes);

#endif

/* What a training is apart from its program, and what a checkpoint keeps: tensors by name, and where the run stands.
 * Threads: plain data.
 */
#ifndef STK_WEIGHTS_TRAIN_STATE_H
#define STK_WEIGHTS_TRAIN_STATE_H

#include <stdint.h>

#include "stoker/status.h"
#include "tensor/shape.h"
#include "weights/skipped.h"

/* The tensor that holds the sums of metrics of the epoch under way; it counts as the optimiser's. */
#define STK_METRIC_SUMS "epoch.metric_sums"

/* Where the content of a tensor comes from that does not lie in one place: read gives all of tensor `number`. */
typedef struct stk_tensor_source {
    stk_status (*read)(void *user, int64_t number, void *dst);
    void *user;
} stk_tensor_source;

typedef struct stk_named_tensor {
    const char *name;     /* "conv2d.weight", "conv2d.weight.momentum": borrowed */
    stk_tensor_view view; /* borrowed; the engine's own memory, or a copy in the host's; data may be NULL with source */
    const stk_tensor_source *source; /* borrowed; NULL: view.data is the content */
    int64_t number;                  /* for source */
} stk_named_tensor;

/* Where the run stands, besides the tensors. All of it is integers and sums, so that resuming is exact. */
typedef struct stk_train_state {
    int64_t step;                                     /* steps done */
    int64_t epoch, i_batch;                           /* the next batch to be trained on, epochs from 0 */
    double epoch_loss_sum, epoch_correct, epoch_top5; /* running sums of the epoch under way */
    double epoch_weight; /* of epoch_loss_sum: samples, or what they count for (stk_model_loss_weight) */
    int64_t epoch_samples;
    double best_value, stop_value; /* of the best validation, less is better (accuracy: negative); infinity at first */
    int64_t best_epoch, best_metric, n_bad_epochs;
    uint64_t seed;
    const stk_skipped *skipped; /* borrowed, the trainer's; NULL: none. It is read by stk_checkpoint_load_skipped. */
} stk_train_state;

#endif

/* Which samples make which batch, where that depends on the order of an epoch: the batches of bucket_by_sequence_length
 * in the order in which tf.data emits them. An epoch's plan is made when somebody first asks for it, in the places of
 * one that nobody needs any more; nothing is allocated then, and nothing can fail.
 *
 * Threads: any.
 */
#ifndef STK_DATA_LOADER_EPOCH_PLAN_H
#define STK_DATA_LOADER_EPOCH_PLAN_H

#include <stdatomic.h>

#include "data/dataset/dataset.h"

typedef struct stk_epoch_plan {
    _Atomic int64_t epoch; /* -1: none yet */
    uint32_t *position;    /* of the samples in the epoch's order, batch after batch */
    /* [n_batches + 1]: where each begins in `position`. A worker that was overtaken may look at another epoch's, which
     * does no harm, since its claim fails. */
    _Atomic int64_t *start;
} stk_epoch_plan;

typedef struct stk_epoch_plans stk_epoch_plans;

/* Room for the plans of n epochs in a row; *bytes: of their memory. */
stk_status stk_epoch_plans_new(const stk_dataset *dataset, int64_t n, stk_epoch_plans **out, size_t *bytes);
void stk_epoch_plans_free(stk_epoch_plans *plans); /* accepts NULL */
/* Only the last n epochs that were asked for can be had. */
const stk_epoch_plan *stk_epoch_plans_get(stk_epoch_plans *plans, int64_t epoch);

#endif

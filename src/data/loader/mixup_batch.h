/* Mixup and cutmix as part of a data set: the checks, and the batch that a ring's slot holds. */
#ifndef STK_DATA_LOADER_MIXUP_BATCH_H
#define STK_DATA_LOADER_MIXUP_BATCH_H

#include "data/loader/worker.h"

bool stk_mixup_wanted(const stk_dataset *dataset);
/* STK_INVALID where image or label, of these types after all stages, cannot be mixed. */
stk_status stk_mixup_check(const stk_dataset *dataset, const stk_field_type *types);
/* For stk_ring_config.complete; work is a stk_work. */
void stk_mixup_complete(const void *work, int64_t i_batch, stk_slot *slot);

#endif

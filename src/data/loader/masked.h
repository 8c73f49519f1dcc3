/* Hiding tokens in a whole batch, once it is complete. The public side is stoker/data/masked.h.
 *
 * Threads: the worker that completes a batch runs it; all is a function of (rules, key, sample).
 */
#ifndef STK_DATA_LOADER_MASKED_H
#define STK_DATA_LOADER_MASKED_H

#include "data/loader/worker.h"

enum { STK_NO_TARGET = -100 }; /* what stk_linear_cross_entropy_default ignores */

typedef struct stk_masked {
    double share;
    int32_t mask;
    int64_t vocabulary;
    uint8_t stays[]; /* [vocabulary]: 1 for a token that is never chosen; others out of the vocabulary are not either */
} stk_masked;

/* One sample of n tokens, the draws by its key. */
void stk_masked_run(const stk_masked *masked, stk_rng rng, int32_t *tokens, int32_t *targets, int64_t n);

/* STK_INVALID where the fields, of these types after all stages, cannot be masked. */
stk_status stk_masked_check(const stk_dataset *dataset, const stk_field_type *types);
/* For stk_ring_config.complete; work is a stk_work. */
void stk_masked_complete(const void *work, int64_t i_batch, stk_slot *slot);

#endif

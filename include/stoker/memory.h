/* Memory accounts: what input pipelines may take together. Every buffer is charged before it is allocated (batch slots,
 * what workers keep, decoders' memory, indexes and arrays that sources hold), and what does not fit is refused or
 * waited for, so that a limit is never exceeded. What the system keeps of files that were read does not count.
 *
 * Threads: any, and any number of loaders on one account.
 */
#ifndef STOKER_MEMORY_H
#define STOKER_MEMORY_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_memory stk_memory;

/* limit_bytes 0: a quarter of what the machine, or the container where that is less, has free now, not counting what
 * sources hold already. STK_NO_MEMORY. */
STK_API stk_status stk_memory_new(size_t limit_bytes, stk_memory **out);
/* An account that loaders use goes with the last of them. Accepts NULL. */
STK_API void stk_memory_free(stk_memory *memory);

typedef struct stk_memory_stats {
    size_t limit_bytes, used_bytes;
    size_t peak_bytes; /* the most that was in use at one time */
    int64_t n_turns;   /* records that had to wait until all others had given back what they kept */
} stk_memory_stats;
STK_API void stk_memory_get_stats(const stk_memory *memory, stk_memory_stats *out);

#ifdef __cplusplus
}
#endif
#endif

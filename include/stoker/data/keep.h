/* Batches that are kept: for consumers that give a batch's memory to others, as bindings of languages that collect
 * garbage do. Nothing is copied: the memory of the batch's slot becomes the consumer's, the slot gets other memory, and
 * what comes back is used again.
 */
#ifndef STOKER_DATA_KEEP_H
#define STOKER_DATA_KEEP_H

#include "stoker/data/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_kept stk_kept;

/* Releases batch, whose data nevertheless stays as it is, and where it is, until stk_kept_release, also after
 * stk_loader_close. Ask for what stk_batch_data and the others tell before. Any number may be kept: memory for n_kept
 * of stk_loader_config is there, more is allocated within the loader's limit. STK_NO_MEMORY: that is used up, and the
 * batch is held as before. STK_INVALID: n_kept is 0. Threads: the consumer's. */
STK_API stk_status stk_batch_keep(const stk_batch *batch, stk_kept **out);
/* Accepts NULL. Threads: any. */
STK_API void stk_kept_release(stk_kept *kept);
/* How many batches of this loader are kept now. Threads: the consumer's. */
STK_API int64_t stk_loader_n_kept(stk_loader *loader);

/* One field of a batch. */
enum { STK_BATCH_NAME_BYTES = 64 };
typedef struct stk_batch_array {
    char name[STK_BATCH_NAME_BYTES]; /* "image"; "tokens.length": true lengths of what is padded */
    stk_dtype dtype;
    stk_shape shape; /* [N, ...], as stk_batch_shape */
    void *data;      /* row-major; borrowed as from stk_batch_data. A kept batch's consumer may write to it */
} stk_batch_array;
/* Field number i of a batch, 0 <= i < n: equally many and in the same order in all batches of a loader. STK_NOT_FOUND
 * past the end. Threads: the consumer's. */
STK_API stk_status stk_batch_field(const stk_batch *batch, int i, stk_batch_array *out);

/* Waits until stk_loader_next would not; false: not within timeout_ms (0: at once). For consumers that have something
 * else to look after, as signals. */
STK_API bool stk_loader_wait(stk_loader *loader, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif

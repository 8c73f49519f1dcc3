/* The cache of a data set: where each chain is cut, and rows of what the heads give. The public side is
 * stoker/data/cache.h.
 *
 * Threads: opened by one loader after the other, under its own lock; then any number of workers read.
 */
#ifndef STK_DATA_CACHE_ROW_CACHE_H
#define STK_DATA_CACHE_ROW_CACHE_H

#include "base/counter.h"
#include "data/cache/row_store.h"
#include "data/source/reader.h"
#include "data/stage/chain.h"
#include "stoker/data/cache.h"

typedef struct stk_row_cache {
    stk_cache_kind wanted;
    char *path; /* owned; NULL: in the cache folder */
    stk_mutex lock;
    bool is_open;        /* guarded by lock; what follows is set then, and is read-only after it */
    stk_cache_kind kind; /* NONE: not worth it */
    stk_row_store *store;
    stk_chain head[STK_MAX_FIELDS], rest[STK_MAX_FIELDS]; /* by field */
    stk_cache_stats stats;
    _Atomic int64_t n_hits, n_misses;
} stk_row_cache;

/* One worker's memory. Starts zeroed. */
typedef struct stk_row_cache_work {
    stk_scratch row, made[STK_MAX_FIELDS];
    stk_chain_work head[STK_MAX_FIELDS];
} stk_row_cache_work;

stk_status stk_row_cache_new(stk_cache_kind kind, const char *path, stk_row_cache **out);
void stk_row_cache_free(stk_row_cache *cache); /* accepts NULL */

/* A store on disk for the rows of a source, once the heads are cut. */
stk_status stk_row_cache_open_file(stk_row_cache *cache, const stk_source *source);

/* The items before the rest of each chain, from the cache or made now. They live until the next call. */
stk_status stk_row_cache_read(stk_row_cache *cache, const stk_source *source, int64_t i_record,
                              const stk_stage_key *key, stk_reader *reader, stk_row_cache_work *work, stk_item *item);
void stk_row_cache_trim(stk_row_cache_work *work);

/* Reads the record and runs the heads. */
stk_status stk_row_cache_make(const stk_row_cache *cache, const stk_source *source, int64_t i_record,
                              const stk_stage_key *key, stk_reader *reader, stk_row_cache_work *work, stk_item *item);
/* A row of all fields: its bytes are in *out, which lies in work->row. */
stk_status stk_row_cache_pack(const stk_source *source, const stk_item *item, stk_row_cache_work *work, stk_span *out);

#endif

/* Side files: what takes long to find out about a data file, kept for the next time. They lie next to the data, or in
 * the cache folder where the data's folder cannot be written to: $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else
 * $HOME/.cache/stoker. One that is damaged, or of another state of its data file (size, time,
 * time of any change), is as good as none.
 *
 * Threads: any, and any number of processes: a side file is replaced whole.
 */
#ifndef STK_DATA_COMMON_SIDE_FILE_H
#define STK_DATA_COMMON_SIDE_FILE_H

#include "base/file.h"
#include "base/input.h"
#include "stoker/data/cache.h"

#define STK_INDEX_SUFFIX ".stkidx"

/* What an index is of. */
typedef enum stk_index_kind {
    STK_INDEX_TFRECORD = 1,
    STK_INDEX_TAR = 2,
    STK_INDEX_LINES = 3, /* with more bits for a table's delimiter and quote: source/shards.c */
    STK_INDEX_VIDEO = 4,
    STK_INDEX_MOST = 0x7fffffff
} stk_index_kind;

/* The index of a data file: *payload is malloc'ed, NULL where there is none. *stale: there is one, of another state of
 * the file. Only STK_NO_MEMORY fails. */
stk_status stk_index_read(const stk_input *file, stk_index_kind kind, uint8_t **payload, size_t *n, bool *stale);
/* Best effort: without an index everything works, only later. */
void stk_index_write(const stk_input *file, stk_index_kind kind, const void *payload, size_t n);
/* What stk_index_read does with a side file's bytes; payload lies in them. False where it does not fit the data file.
 * Fuzzed. */
bool stk_index_parse(stk_span bytes, stk_index_kind kind, uint64_t file_bytes, int64_t file_stamp, stk_span *payload);

/* A path in the cache folder for something made of the file as it is now: another state of it has another name. The
 * folder is made. */
stk_status stk_cache_path(const stk_input *file, const char *suffix, char *out, size_t out_bytes);

/* Whether this process keeps on disk what it finds out about data: index files, answers of scans, rows of caches,
 * entry points. See stk_keep_data in stoker/data/cache.h. Threads: any.
 */
bool stk_keeps_data(void);

#endif

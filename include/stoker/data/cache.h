/* Caches of what does not change from epoch to epoch: the output of each field's stages before its first random one,
 * kept for each record. Later epochs take it from there, and only what is random is done again. Batches are the same,
 * bit for bit, with and without. A cache belongs to records and not to an order, so that shuffles work as ever.
 *
 * In memory it is a part of the pipeline's limit (stoker/memory.h) and holds as many records as fit. On disk it is one
 * file, which several processes may share and later runs go on with. Each of its records carries a checksum, and size
 * and time of the file that it was made of: one that is damaged or has changed since is rebuilt.
 * Threads: as for stoker/data/dataset.h.
 */
#ifndef STOKER_DATA_CACHE_H
#define STOKER_DATA_CACHE_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_cache_kind {
    STK_CACHE_NONE,
    STK_CACHE_MEMORY,
    STK_CACHE_DISK,
    STK_CACHE_AUTO /* in memory, where all of it fits and a few samples are made clearly faster with it; else none */
} stk_cache_kind;

/* The first loader makes the cache, which lives as long as the data set. path: of the file of a cache on disk; NULL:
 * one in the cache folder ($STOKER_CACHE, $XDG_CACHE_HOME/stoker, ~/.cache/stoker), named after source and stages.
 * STK_UNSUPPORTED, when a loader is opened: several data sets as one; on disk, sources that cannot tell whether they
 * have changed, and stages made of C functions. */
STK_API void stk_dataset_cache(stk_dataset *dataset, stk_cache_kind kind, const char *path);

/* keep false: from now on data sets of this process keep nothing of what they find out: no index files next to the
 * data, no answers of scans, no rows on disk, no entry points. What is there is read. For who only looks. What cannot
 * be read otherwise still goes into the cache folder: unpacked shards and blocks of remote files. Threads: any. */
STK_API void stk_keep_data(bool keep);

/* From now on what is asked of servers must come within that many seconds in all, in this process: then requests are
 * broken off, none is tried again, and reading fails with STK_IO. 0: as long as six tries take, the default. For who
 * must answer in time, whatever the network does. Threads: any. */
STK_API void stk_addresses_give_up_after(double seconds);

/* The file of certificates (PEM) by which https addresses are checked from now on, in this process; NULL: the one that
 * the variables CURL_CA_BUNDLE or SSL_CERT_FILE name, else the system's. STK_NO_MEMORY. Threads: any. */
STK_API stk_status stk_addresses_trust(const char *file);

typedef struct stk_cache_stats {
    stk_cache_kind kind; /* as it was chosen; STK_CACHE_NONE: there is none, or no loader yet */
    char path[1024];     /* on disk */
    int64_t n_records, n_present;
    size_t n_bytes;        /* of those that are present */
    size_t likely_bytes;   /* of all, as the first records suggest */
    size_t reserved_bytes; /* of the memory limit */
    int64_t n_hits, n_misses;
    bool disk_is_full;          /* so that no more is kept; what is there serves */
    double ns_with, ns_without; /* AUTO: what a sample takes, as measured; 0: not measured */
} stk_cache_stats;
STK_API void stk_dataset_get_cache(const stk_dataset *dataset, stk_cache_stats *out);

#ifdef __cplusplus
}
#endif
#endif

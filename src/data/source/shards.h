/* Files that hold many records each, TFRecords, lines of text or rows of tables: opened, unpacked where they are
 * compressed, indexed; and found by the number of a record over all of them. Threads: any, once opened. */
#ifndef STK_DATA_SOURCE_SHARDS_H
#define STK_DATA_SOURCE_SHARDS_H

#include "data/codec/lines.h"

/* That many files stay open; of more each read opens its own. */
enum { STK_MOST_OPEN_SHARDS = 256 };

typedef struct stk_shard {
    char *path;      /* as it was given */
    stk_input file;  /* the records as they are, of a compressed file unpacked */
    uint8_t *bytes;  /* all of file, where it is in memory; else NULL */
    uint64_t *start; /* by record */
    int64_t n_records;
    int64_t n_skipped; /* records before these that do not count */
    int64_t i_first;   /* number of its first record over all shards */
    bool was_stale;    /* its index had to be rebuilt */
} stk_shard;

typedef struct stk_shards {
    stk_shard *shard;
    int n_shards;
    int64_t n_records;
    int n_stale;       /* indexes that had to be rebuilt */
    const char *stale; /* the first file with such an index; borrowed from its shard */
} stk_shards;

/* in_memory: all of each file is read now, and the files are closed. Free *out with stk_shards_close, after an error
 * too. Texts name the file. */
stk_status stk_shards_open_tfrecord(const char *const *paths, int n_paths, bool in_memory, stk_shards *out);
/* Files of lines, or rows where cells is not NULL; GZIP is unpacked, too. whole: a file is one record. The first n_skip
 * lines of each file do not count. */
stk_status stk_shards_open_lines(const stk_names *names, const stk_cells *cells, bool whole, int64_t n_skip,
                                 bool in_memory, stk_shards *out);
void stk_shards_close(stk_shards *shards);
/* What they keep in memory: indexes, and files that were read. */
size_t stk_shards_bytes(const stk_shards *shards);

/* Where record i_record lies. */
typedef struct stk_shard_place {
    const stk_shard *shard;
    int64_t i_in_shard;
    uint64_t at, n_bytes;
} stk_shard_place;
stk_shard_place stk_shards_find(const stk_shards *shards, int64_t i_record);
/* A hint that stk_shards_find will be asked for it soon. */
void stk_shards_prefetch(const stk_shards *shards, int64_t i_record);

/* Unpacks a GZIP or ZLIB file into the cache folder, once for each state of the file. *path is malloc'ed. */
stk_status stk_unpack_to_cache(const stk_input *file, char **path);

#endif

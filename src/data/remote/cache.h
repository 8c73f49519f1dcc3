/* Blocks of remote files on disk, so that each byte crosses the network once.
 *
 * A block is a file, ROOT/remote/ID/NUMBER, ID being a SHA-256's first half (libcrypto's): its bytes and an XXH64 of
 * them, checked when a process first uses it. It is made under another name and renamed, so that a kill leaves none
 * that is not whole, and any number of processes share the folder. When all blocks take more than the limit, those that
 * no process has used for longest go.
 *
 *   ROOT    $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker
 *   limit   $STOKER_CACHE_LIMIT in bytes, or with KiB, MiB, GiB, TiB; default 16GiB
 *
 * Threads: any.
 */
#ifndef STK_DATA_REMOTE_CACHE_H
#define STK_DATA_REMOTE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

enum { STK_BLOCK_BYTES = 1 << 20 };

typedef struct stk_block_place {
    uint64_t id[2];  /* of the remote file in its present state: stk_cache_id */
    uint64_t number; /* of the block */
    size_t n_bytes;  /* of the block: the last one of a file is shorter */
} stk_block_place;

/* What tells a file in one state from all others. An address alone does not: one bucket's name stands for another store
 * where the endpoint is another one, and whoever runs a server chooses its ETags. */
typedef struct stk_cache_key {
    const char *store;           /* of stk_store_identity */
    const char *path;            /* the whole address */
    const char *etag, *modified; /* "": not told. Where both are, a file is kept for this process alone */
    uint64_t n_bytes;
} stk_cache_key;
stk_status stk_cache_id(const stk_cache_key *key, uint64_t id[2]);
/* Whether there is a cache folder. */
bool stk_cache_is_there(void);
/* How many blocks may be fetched before somebody asks for them without pushing others out; 0: the cache is too small.
 */
int64_t stk_cache_blocks_ahead(void);
/* Bytes [at, at + n) of the block, as far as it is there. check: compares the checksum of the whole block first. False:
 * it is not there, or not whole. */
bool stk_cache_read(const stk_block_place *place, bool check, size_t at, size_t n, void *dst);
/* The whole block, compared with its checksum. */
bool stk_cache_read_whole(const stk_block_place *place, void *dst);
/* Whether it is there, whole or not. */
bool stk_cache_has(const stk_block_place *place);
/* Best effort: a block that could not be kept is fetched again. */
void stk_cache_write(const stk_block_place *place, const void *data);
/* "16GiB" and the like. False: no size. */
bool stk_cache_parse_limit(const char *text, uint64_t *out);

#endif

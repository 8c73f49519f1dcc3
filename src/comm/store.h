/* Keys and values that the processes of an MPI launcher have together: what one of them puts, all can get. For
 * libraries that find each other by such a store, as PJRT's plug-ins; not for what is large or comes often.
 *
 *   put   keeps the value here, and a thread of the store's sends it to every other process, in pieces
 *   get   waits until the value has come here; nobody is asked for it
 *
 * A store belongs to its process, as MPI does, and ends with it. Keys are any bytes, at least one; each is put once, by
 * one rank. Threads: any.
 */
#ifndef STK_COMM_STORE_H
#define STK_COMM_STORE_H

#include <stddef.h>

#include "stoker/status.h"

typedef struct stk_store stk_store;

typedef struct stk_bytes {
    const void *data; /* borrowed until the call returns */
    size_t n;
} stk_bytes;

/* That of this process, begun the first time. *out NULL: the process has opened no communication with others. Threads:
 * one at a time. */
stk_status stk_store_open(stk_store **out);
int stk_store_rank(const stk_store *store);
int stk_store_n_ranks(const stk_store *store);
/* Returns before the value has come anywhere. STK_INVALID: the key was put before. */
stk_status stk_store_put(stk_store *store, stk_bytes key, stk_bytes value);
/* *value: a copy with a 0 behind it, returned: free(). STK_NOT_FOUND: nobody has put the key within timeout_ms, or,
 * with 0, until now. STK_LOST: some rank has failed. */
stk_status stk_store_get(stk_store *store, stk_bytes key, int timeout_ms, void **value, size_t *bytes);
/* All gets and puts of all ranks fail with that text from now on, of which each rank's first one counts. Accepts NULL.
 */
void stk_store_abort(stk_store *store, const char *why);

/* --- the end of the process (mpi_process.c); both accept NULL --- */

/* Waits a moment for what has yet to be sent. */
void stk_store_flush(stk_store *store);
/* No thread of the store's calls MPI any more. */
void stk_store_end(stk_store *store);

#endif

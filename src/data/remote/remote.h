/* Remote files as inputs: parts of them over HTTP, kept in blocks on disk (remote/cache.h).
 *
 * A block that is missing is asked for together with those after it, as many as come within the time that the first
 * byte takes (at most 16): then waiting is at most half of the time. Several threads fetch different blocks at once;
 * one block is fetched once. What will be read soon comes in the background (remote/fetcher.h). Threads: any.
 */
#ifndef STK_DATA_REMOTE_REMOTE_H
#define STK_DATA_REMOTE_REMOTE_H

#include "base/input.h"

/* A local file, or a remote one where the path is an address (remote/http.h). What every source opens its files with.
 */
stk_status stk_open_input(const char *path, bool keep_open, stk_input *out);
/* A whole file, local or remote, into *buffer as stk_file_read does it. */
stk_status stk_read_input(const char *path, uint8_t **buffer, size_t *capacity, size_t *n);
/* The same for a file that should have no more than most_bytes, as stk_file_read_small does it. */
stk_status stk_read_input_small(const char *path, size_t most_bytes, uint8_t **buffer, size_t *capacity, size_t *n);

#endif

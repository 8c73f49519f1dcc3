/* Parts of files from HTTP servers, through libcurl: range requests, time-outs, retries. A build without libcurl
 * refuses them by name. Connections stay open, one for each thread.
 *
 * What may pass is tried again, RETRIES times with growing pauses: broken and stalled connections, answers that are cut
 * short, 408, 429 and 5xx. Threads: any.
 */
#ifndef STK_DATA_REMOTE_HTTP_H
#define STK_DATA_REMOTE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

/* Whether a path is an address: http:// or https://. */
bool stk_is_remote(const char *path);

typedef struct stk_http_file {
    uint64_t n_bytes;
    char etag[128];    /* of the present state; "": the server tells none */
    char modified[64]; /* the same by date */
    double latency_s;  /* from the question to the first byte */
} stk_http_file;

stk_status stk_http_stat(const char *url, stk_http_file *out);
/* Bytes [at, at + n) of the file in that state: STK_CORRUPT when it has changed since. *latency_s and *seconds, of the
 * whole, may be NULL. */
stk_status stk_http_read(const char *url, const stk_http_file *file, uint64_t at, size_t n, void *dst,
                         double *latency_s, double *seconds);

#endif

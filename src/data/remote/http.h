/* Parts of files from HTTP servers and object stores: range requests that are tried again where that may help.
 *
 * What may pass is tried again five times, after 0.2 s and then twice as long each time, each less a random part of up
 * to a half, so that many readers do not come back at once; a server's Retry-After counts where it is longer (up to
 * 60 s). May pass: no connection, broken, cut and stalled answers, answers to another range, 408, 429 and 5xx. A
 * bucket that is said to lie in another region is asked there. Messages name address and byte.
 *
 * Threads: any.
 */
#ifndef STK_DATA_REMOTE_HTTP_H
#define STK_DATA_REMOTE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Whether a path is an address: http://, https://, s3:// or gs://. */
bool stk_is_remote(const char *path);

typedef struct stk_http_file {
    uint64_t n_bytes;
    char etag[128];    /* of the present state; "": the server tells none */
    char modified[64]; /* the same by date */
    double latency_s;  /* from the question to the first byte */
} stk_http_file;

stk_status stk_http_stat(const char *url, stk_http_file *out);
/* Bytes [at, at + n) of the file in that state. STK_IO for all that goes wrong, a file that has changed or gone since
 * included. *latency_s and *seconds, of the
 * whole, may be NULL. once: nothing is tried again. */
stk_status stk_http_read(const char *url, const stk_http_file *file, uint64_t at, size_t n, void *dst, bool once,
                         double *latency_s, double *seconds);
/* What a bucket answers to a query (encoded, sorted by name). path: "s3://BUCKET/..."; free *out. */
stk_status stk_http_query(const char *path, const char *query, stk_text *out);

#endif

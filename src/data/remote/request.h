/* One request over HTTP, through libcurl: no second try and no judgement of the answer. Each thread has a handle of its
 * own, whose connections stay open. A build without libcurl refuses all by name. Threads: any.
 */
#ifndef STK_DATA_REMOTE_REQUEST_H
#define STK_DATA_REMOTE_REQUEST_H

#include <stdint.h>

#include "data/remote/store.h"

/* How far a request came. */
typedef enum stk_sent {
    STK_SENT_ANSWERED, /* with any code, and whole */
    STK_SENT_BROKEN,   /* not, or not wholly, which may pass: refused, reset, cut, stalled */
    STK_SENT_HOPELESS,
} stk_sent;

enum { STK_ANSWER_MOST_TEXT = 16 << 20 }; /* bytes of an answer that is no part of a file */

typedef struct stk_answer {
    /* Where the body of a 206 goes, set by the caller; dst NULL: a part is not what is asked for. */
    uint8_t *dst; /* [room] */
    size_t room, n;
    stk_text text; /* the body of other answers; of an error its first bytes. To be freed */
    bool too_long; /* more came than there is room for */
    size_t header_bytes;
    stk_sent sent;
    long code;
    int64_t first, total; /* byte and size of the file, from Content-Range; -1: not told */
    char etag[128], modified[64];
    char region[64]; /* of the bucket, as the store says it; "": it does not */
    char error[256]; /* of libcurl; "" where answered */
    double latency_s, seconds;
    double retry_after_s; /* that the server asks for; 0: it does not */
    bool has_keys;        /* signed, by a key of the caller's */
} stk_answer;

/* Requests of this thread are broken off soon after *stop is true. Borrowed; NULL: they are not. */
void stk_request_stop_when(const _Atomic bool *stop);
#define STK_REQUEST_NO_END 1e9
/* Until requests of this thread are broken off: by that, or by stk_addresses_give_up_after. 0: they are. */
double stk_request_seconds_left(void);
/* Fails only where no request could be made of it. */
stk_status stk_request(const stk_store_ask *ask, stk_answer *answer);

#endif

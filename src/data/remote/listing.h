/* What a bucket answers when it is asked which objects it holds: the XML of ListObjectsV2.
 *
 * A small strict parser, for this document and no other: elements and their text, the five entities and numbers as
 * characters. No document types, no comments, no CDATA; element names must match, and attributes are passed over.
 * Source: docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html. Threads: any.
 */
#ifndef STK_DATA_REMOTE_LISTING_H
#define STK_DATA_REMOTE_LISTING_H

#include "base/file.h"
#include "base/text.h"

typedef struct stk_listed {
    const char *key;  /* without zero bytes, not empty */
    const char *etag; /* "" where there is none */
    uint64_t n_bytes;
} stk_listed;

typedef stk_status (*stk_listed_fn)(void *user, const stk_listed *object);

/* Calls fn for each object, whose texts live until it returns. *next is the token to ask for more with, "" when this
 * was the last part; free it, after an error too. STK_CORRUPT where the bytes are no such answer. Fuzzed. */
stk_status stk_listing_parse(stk_span xml, stk_listed_fn fn, void *user, stk_text *next);

#endif

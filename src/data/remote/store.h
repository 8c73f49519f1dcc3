/* From addresses to requests: http:// and https:// as they are, s3:// and gs:// as signed requests to the store.
 *
 *   s3://BUCKET/KEY   https://BUCKET.s3.REGION.amazonaws.com/KEY (ENDPOINT/BUCKET/KEY where an endpoint is set, or
 * where the bucket's name has a dot, which certificates do not cover) gs://BUCKET/KEY
 * https://storage.googleapis.com/BUCKET/KEY, which takes the same signatures
 *
 * Keys may hold any byte. Where keys, regions and endpoints come from: remote/keys.h. Threads: any.
 */
#ifndef STK_DATA_REMOTE_STORE_H
#define STK_DATA_REMOTE_STORE_H

#include "base/text.h"
#include "data/remote/keys.h"

/* What an address begins with: s3://, gs://, else none. */
stk_store stk_store_of(const char *path);

typedef struct stk_store_ask {
    const char *path;  /* any address */
    const char *query; /* encoded, sorted by name; not "": the bucket is asked, whatever the key */
    const char *range; /* "bytes=0-9"; "": none */
    const char *etag;  /* the state that the object must be in; "": any */
} stk_store_ask;

typedef struct stk_store_call {
    stk_text url;
    stk_text header; /* lines, each ended by a zero byte */
    stk_store store;
    bool has_keys;
    char region[64]; /* signed for */
} stk_store_call;

/* For one request, at once: a signature is good for minutes. *out is released by stk_store_call_free, also after an
 * error. */
stk_status stk_store_prepare(const stk_store_ask *ask, stk_store_call *out);
/* Appends which store a path lies in, as far as the path does not say it: where an endpoint is set, that and who asks,
 * as such stores may have buckets for each; else which of the clouds, whose buckets' names are unique. */
stk_status stk_store_identity(const char *path, stk_text *out);
void stk_store_call_free(stk_store_call *call);
/* A store's answer said that the bucket of path lies in this region: later requests go there. False: they did so
 * already, or this is no region's name. */
bool stk_store_learn_region(const char *path, const char *region);

#endif

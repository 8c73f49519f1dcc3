/* Signing of requests to object stores: AWS Signature Version 4, in the Authorization header.
 *
 * Source: "Create a signed AWS API request",
 * docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. SHA-256 and HMAC are libcrypto's;
 * a build without it refuses to sign.
 *
 * Threads: any.
 */
#ifndef STK_DATA_REMOTE_SIGN_H
#define STK_DATA_REMOTE_SIGN_H

#include "base/text.h"

/* Of no bytes: the body of every request that reads. */
#define STK_SHA256_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

typedef struct stk_sign_header {
    const char *name; /* lower-case */
    const char *value;
} stk_sign_header;

/* All borrowed. */
typedef struct stk_sign_request {
    const char *method;
    const char *path;  /* encoded, begins with a slash */
    const char *query; /* encoded, sorted by name; "": none */
    const stk_sign_header
        *header; /* [n_headers], sorted by name, all of which are signed; values without spaces around */
    int n_headers;
    const char *body_sum; /* SHA-256 in hexadecimal */
    const char *time;     /* UTC, as 20150830T123600Z */
    const char *region, *service;
    const char *key_id, *secret;
} stk_sign_request;

/* Appends the value of the header Authorization. */
stk_status stk_request_sign(const stk_sign_request *request, stk_text *out);
/* Appends n bytes in percent-encoding: all but letters, digits and -._~, and the slash where keep_slash says so. */
void stk_percent_encode(const char *bytes, size_t n, bool keep_slash, stk_text *out);

#endif

/* What a scraper asks for: the first line of an HTTP/1 request (RFC 9112, section 3), and nothing of its headers, since
 * no answer depends on them. Pure functions. Threads: any.
 */
#ifndef STK_EVENTS_HTTP_REQUEST_H
#define STK_EVENTS_HTTP_REQUEST_H

#include <stddef.h>

typedef enum stk_http_asks {
    STK_HTTP_MORE, /* the headers have not ended yet */
    STK_HTTP_GET,
    STK_HTTP_HEAD,
    STK_HTTP_OTHER, /* another method, as POST */
    STK_HTTP_BAD    /* no request */
} stk_http_asks;

typedef struct stk_http_request {
    stk_http_asks asks;
    const char *
        path; /* [n_path] within text (or "/"), without a host and without what follows a '?'; of GET, HEAD and OTHER */
    size_t n_path;
} stk_http_request;

/* text[n]: what has come so far; need not end in 0, and is borrowed by the result. */
stk_http_request stk_http_parse(const char *text, size_t n);

#endif

/* See events/http_request.h. */
#include "events/http_request.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* An empty line ends the headers; a line may end in LF alone. */
static bool has_ended(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\n') continue;
        size_t next = i + 1 < n && text[i + 1] == '\r' ? i + 2 : i + 1;
        if (next < n && text[next] == '\n') return true;
    }
    return false;
}

/* Whether text[n] begins with word, and what follows is "1.0", "1.1", ... */
static bool is_version(const char *text, size_t n)
{
    return n == 8 && !memcmp(text, "HTTP/1.", 7) && text[7] >= '0' && text[7] <= '9';
}

static bool is_visible(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~') return false;
    return n > 0;
}

/* The path in an absolute target (RFC 9112, 3.2.2), as proxies ask: "http://host:port/path". NULL: it is none. */
static const char *skip_host(const char *target, size_t n)
{
    static const char scheme[] = "http://";
    size_t n_scheme = sizeof(scheme) - 1;
    if (n <= n_scheme || strncasecmp(target, scheme, n_scheme) != 0) return NULL;
    const char *host = target + n_scheme;
    size_t n_host = 0;
    while (n_scheme + n_host < n && host[n_host] != '/' && host[n_host] != '?')
        n_host++;
    return n_host > 0 ? host + n_host : NULL;
}

stk_http_request stk_http_parse(const char *text, size_t n)
{
    stk_http_request bad = {STK_HTTP_BAD, NULL, 0}, request = {STK_HTTP_OTHER, NULL, 0};
    const char *end = memchr(text, '\n', n);
    if (!end) return (stk_http_request){STK_HTTP_MORE, NULL, 0};
    size_t line = (size_t)(end - text);
    if (line > 0 && text[line - 1] == '\r') line--;
    const char *space = memchr(text, ' ', line);
    if (!space) return bad;
    size_t method = (size_t)(space - text), rest = line - method - 1;
    const char *target = space + 1, *second = memchr(target, ' ', rest);
    if (!second) return bad;
    size_t n_target = (size_t)(second - target);
    if (!is_version(second + 1, rest - n_target - 1) || !is_visible(text, method) || !is_visible(target, n_target))
        return bad;
    if (target[0] != '/') {
        const char *path = skip_host(target, n_target);
        if (!path) return bad;
        n_target -= (size_t)(path - target);
        target = path;
    }
    if (!has_ended(text, n)) return (stk_http_request){STK_HTTP_MORE, NULL, 0};
    if (method == 3 && !memcmp(text, "GET", 3)) request.asks = STK_HTTP_GET;
    if (method == 4 && !memcmp(text, "HEAD", 4)) request.asks = STK_HTTP_HEAD;
    const char *query = memchr(target, '?', n_target);
    request.path = target;
    request.n_path = query ? (size_t)(query - target) : n_target;
    if (request.n_path == 0) { /* of a host alone */
        request.path = "/";
        request.n_path = 1;
    }
    return request;
}

/* See events/http_request.h. */
#include "events/http_request.h"

#include <stdbool.h>
#include <string.h>

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
    if (target[0] != '/') return bad;
    if (!has_ended(text, n)) return (stk_http_request){STK_HTTP_MORE, NULL, 0};
    if (method == 3 && !memcmp(text, "GET", 3)) request.asks = STK_HTTP_GET;
    if (method == 4 && !memcmp(text, "HEAD", 4)) request.asks = STK_HTTP_HEAD;
    const char *query = memchr(target, '?', n_target);
    request.path = target;
    request.n_path = query ? (size_t)(query - target) : n_target;
    return request;
}

/* Requests to the exporter. What it says must not depend on how the bytes come: a request that is whole is one however
 * much follows, and one that is not may still become one.
 *
 * covers: events/http_request.c
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "events/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The path is a part of the text, or "/" where the target is a host alone. */
static bool is_inside(const stk_http_request *request, const char *text, size_t size)
{
    uintptr_t at = (uintptr_t)request->path, begin = (uintptr_t)text;
    return (at >= begin && at + request->n_path <= begin + size) || request->n_path == 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    if (size == 0) return 0;
    stk_http_request whole = stk_http_parse(text, size);
    if (whole.asks == STK_HTTP_MORE) return 0;
    if (whole.asks != STK_HTTP_BAD && (whole.n_path == 0 || whole.path[0] != '/' || !is_inside(&whole, text, size)))
        abort();
    /* Of the prefixes, those that say anything but MORE all say the same. */
    size_t step = size / 64 + 1;
    for (size_t n = 0; n < size; n += step) {
        stk_http_request part = stk_http_parse(text, n);
        if (part.asks == STK_HTTP_MORE) continue;
        if (part.asks != whole.asks || part.path != whole.path || part.n_path != whole.n_path) abort();
    }
    return 0;
}

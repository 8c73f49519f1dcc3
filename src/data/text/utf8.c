/* See text/utf8.h. */
#include "data/text/utf8.h"

#include <string.h>

/* Eight bytes from 0x01 to 0x7f: nearly all of most texts. */
static int is_plain(const uint8_t *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof(w));
    return !((w | ((w - 0x0101010101010101u) & ~w)) & 0x8080808080808080u);
}

size_t stk_utf8_count_bad(const uint8_t *text, size_t n, size_t *first)
{
    size_t n_bad = 0;
    *first = n;
    for (size_t at = 0, length; at < n; at += length) {
        length = 8;
        if (n - at >= 8 && is_plain(text + at)) continue;
        uint32_t c = stk_utf8_next(text + at, text + n, &length);
        if (c != 0 && c != STK_NO_CHARACTER) continue;
        if (n_bad++ == 0) *first = at;
    }
    return n_bad;
}

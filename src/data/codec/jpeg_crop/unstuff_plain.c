#include <string.h>

#include "data/codec/jpeg_crop/kernels.h"

size_t stk_jpeg_unstuff_plain(uint8_t *dst, size_t room, const uint8_t **src, const uint8_t *end)
{
    uint8_t *to = dst, *to_end = dst + room;
    const uint8_t *from = *src;
    while (from < end && to < to_end) {
        size_t most = (size_t)(end - from) < (size_t)(to_end - to) ? (size_t)(end - from) : (size_t)(to_end - to);
        const uint8_t *ff = memchr(from, 0xFF, most);
        size_t n = ff ? (size_t)(ff - from) : most;
        memcpy(to, from, n);
        to += n;
        from += n;
        if (!ff) continue;
        if (end - ff < 2 || ff[1] != 0) break;
        *to++ = 0xFF;
        from += 2;
    }
    *src = from;
    return (size_t)(to - dst);
}

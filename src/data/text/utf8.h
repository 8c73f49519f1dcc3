/* UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF. Threads: any. */
#ifndef STK_DATA_TEXT_UTF8_H
#define STK_DATA_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* What a byte that belongs to no character is. */
#define STK_NO_CHARACTER 0xffffffffu

static inline int stk_utf8_is_tail(const uint8_t *p, const uint8_t *end)
{
    return p < end && (*p & 0xc0) == 0x80;
}

/* The character at p, which lies before end, and its bytes. A byte that is none is STK_NO_CHARACTER and one byte. */
static inline uint32_t stk_utf8_next(const uint8_t *p, const uint8_t *end, size_t *n)
{
    uint32_t c = p[0];
    *n = 1;
    if (c < 0x80) return c;
    if (c < 0xc2 || c > 0xf4 || !stk_utf8_is_tail(p + 1, end)) return STK_NO_CHARACTER;
    if (c < 0xe0) {
        *n = 2;
        return (c & 31) << 6 | (p[1] & 63u);
    }
    if (!stk_utf8_is_tail(p + 2, end)) return STK_NO_CHARACTER;
    if (c < 0xf0) {
        c = (c & 15) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
        if (c < 0x800 || (c >= 0xd800 && c < 0xe000)) return STK_NO_CHARACTER;
        *n = 3;
        return c;
    }
    if (!stk_utf8_is_tail(p + 3, end)) return STK_NO_CHARACTER;
    c = (c & 7) << 18 | (p[1] & 63u) << 12 | (p[2] & 63u) << 6 | (p[3] & 63u);
    if (c < 0x10000 || c > 0x10ffff) return STK_NO_CHARACTER;
    *n = 4;
    return c;
}

/* How many of n bytes are in no text: those that belong to no character, and NULs. *first: where the first is, or n. */
size_t stk_utf8_count_bad(const uint8_t *text, size_t n, size_t *first);

/* Writes c, a character, and returns its bytes, at most 4. */
static inline size_t stk_utf8_put(uint32_t c, uint8_t *dst)
{
    if (c < 0x80) {
        dst[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        dst[0] = (uint8_t)(0xc0 | c >> 6);
        dst[1] = (uint8_t)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        dst[0] = (uint8_t)(0xe0 | c >> 12);
        dst[1] = (uint8_t)(0x80 | (c >> 6 & 63));
        dst[2] = (uint8_t)(0x80 | (c & 63));
        return 3;
    }
    dst[0] = (uint8_t)(0xf0 | c >> 18);
    dst[1] = (uint8_t)(0x80 | (c >> 12 & 63));
    dst[2] = (uint8_t)(0x80 | (c >> 6 & 63));
    dst[3] = (uint8_t)(0x80 | (c & 63));
    return 4;
}

#endif

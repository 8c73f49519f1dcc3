#include "base/printable.h"

#include <stdio.h>
#include <string.h>

uint32_t stk_character_code(const unsigned char *p, int n)
{
    uint32_t code = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (int i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

/* C0, DEL and C1; U+061C, U+200E and so on: marks and overrides of direction; U+2028 and U+2029: ends of lines. */
bool stk_is_unprintable(const unsigned char *p, int n)
{
    if (n == 0) return true;
    uint32_t c = stk_character_code(p, n);
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

int stk_printable_character(const char *text, char out[STK_PRINTABLE_BYTES])
{
    if (!text || !out) return 0;
    const unsigned char *p = (const unsigned char *)text;
    int n = stk_character_bytes(p);
    char letter = *p == '\n' ? 'n' : *p == '\t' ? 't' : *p == '\r' ? 'r' : 0;
    if (!stk_is_unprintable(p, n))
        snprintf(out, STK_PRINTABLE_BYTES, "%.*s", n, text);
    else if (letter)
        snprintf(out, STK_PRINTABLE_BYTES, "\\%c", letter);
    else
        snprintf(out, STK_PRINTABLE_BYTES, n > 1 ? "\\u%04x" : "\\x%02x", n > 1 ? stk_character_code(p, n) : *p);
    return n ? n : 1;
}

void stk_text_add_printable(stk_text *out, const char *text)
{
    char shown[STK_PRINTABLE_BYTES];
    for (int n_read; *text; text += n_read) {
        n_read = stk_printable_character(text, shown);
        stk_text_add_bytes(out, shown, strlen(shown));
    }
}

void stk_text_add_quotable(stk_text *out, const char *text)
{
    char shown[STK_PRINTABLE_BYTES];
    for (int n_read; *text; text += n_read) {
        n_read = stk_printable_character(text, shown);
        for (const char *p = shown; *p; p++) {
            if (*p == '"' || *p == '\\') stk_text_add(out, "\\");
            stk_text_add_bytes(out, p, 1);
        }
    }
}

static const char *copy(const char *text, bool keeps_lines, char *out, size_t capacity)
{
    char shown[STK_PRINTABLE_BYTES];
    size_t used = 0;
    for (int n_read; *text && capacity; text += n_read) {
        n_read = stk_printable_character(text, shown);
        if (keeps_lines && *text == '\n') memcpy(shown, "\n", 2);
        size_t n = strlen(shown);
        if (used + n + 1 > capacity) break;
        memcpy(out + used, shown, n);
        used += n;
    }
    if (capacity) out[used] = 0;
    return out;
}

const char *stk_printable(const char *text, char *out, size_t capacity)
{
    if (!text || !out) return "";
    return copy(text, false, out, capacity);
}

const char *stk_printable_lines(const char *text, char *out, size_t capacity)
{
    return copy(text, true, out, capacity);
}

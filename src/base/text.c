#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static bool reserve(stk_text *text, size_t more)
{
    if (text->failed) return false;
    if (text->n + more + 1 <= text->capacity) return true;
    size_t capacity = text->capacity * 2 > text->n + more + 1 ? text->capacity * 2 : text->n + more + 64;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void stk_text_add(stk_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(text, (size_t)n)) {
        vsnprintf(text->data + text->n, (size_t)n + 1, format, again);
        text->n += (size_t)n;
    }
    va_end(again);
}

void stk_text_add_bytes(stk_text *text, const void *bytes, size_t n)
{
    if (!reserve(text, n)) return;
    if (n) memcpy(text->data + text->n, bytes, n); /* No bytes may be NULL. */
    text->n += n;
    text->data[text->n] = 0;
}

stk_status stk_text_status(const stk_text *text)
{
    return text->failed ? stk_fail_memory(text->capacity) : STK_OK;
}

const char *stk_text_get(const stk_text *text)
{
    return text->data ? text->data : "";
}

void stk_text_free(stk_text *text)
{
    free(text->data);
    *text = (stk_text){0};
}

size_t stk_edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST) return na > nb ? na : nb;
    /* Optimal string alignment: rows i-2, i-1 and i of the table. */
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3];
        const size_t *one = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = one[j - 1] + (a[i - 1] != b[j - 1]);
            if (one[j] + 1 < best) best = one[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two[j - 2] + 1 < best)
                best = two[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[na % 3][nb];
}

int stk_character_bytes(const unsigned char *p)
{
    int n = p[0] < 0x80                   ? 1
            : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
            : (p[0] & 0xf0) == 0xe0       ? 3
            : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                          : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    /* Longer than need be, halves of UTF-16's pairs, and what is above U+10FFFF. */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
    return n;
}

const char *stk_count_text(int64_t n, char out[STK_COUNT_TEXT])
{
    char *p = out + STK_COUNT_TEXT - 1;
    int n_digits = 0;
    *p = 0;
    do {
        if (n_digits && n_digits % 3 == 0) *--p = ',';
        *--p = (char)('0' + n % 10);
        n_digits++;
    } while (n /= 10);
    return memmove(out, p, (size_t)(out + STK_COUNT_TEXT - p));
}

const char *stk_nearest_name(const char *word, const char *const *names)
{
    const char *best = NULL;
    size_t n = strlen(word), least = n < 5 ? 2 : (n + 1) / 3 + 1; /* Farther is no likely slip of the fingers. */
    for (; *names; names++) {
        size_t distance = stk_edit_distance(word, *names), n_name = strlen(*names);
        /* The word itself is no answer, and one of which nothing is left is none either. */
        if (distance == 0 || distance >= least || (distance >= n && distance >= n_name)) continue;
        least = distance;
        best = *names;
    }
    return best;
}

/* See text/added.h. */
#include "data/text/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/text/classes.h"

stk_status stk_added_add(stk_added *a, stk_span text, int32_t id, int flags)
{
    if (text.n == 0) return stk_fail(STK_INVALID, "added token %d is empty", id);
    enum { MOST_ADDED = 1 << 16 }; /* all that begin alike are compared with each place of a text */
    if (a->n == MOST_ADDED) return stk_fail(STK_UNSUPPORTED, "more than %d added tokens", MOST_ADDED);
    if (a->n == a->room) {
        int room = 2 * a->room + 16;
        stk_added_token *p = realloc(a->token, (size_t)room * sizeof(*p));
        if (!p) return stk_fail_memory((size_t)room * sizeof(*p));
        a->token = p;
        a->room = room;
    }
    uint8_t *copy = malloc(text.n);
    if (!copy) return stk_fail_memory(text.n);
    memcpy(copy, text.data, text.n);
    a->token[a->n++] = (stk_added_token){copy, text.n, id, flags};
    return STK_OK;
}

static int compare(const void *a, const void *b)
{
    const stk_added_token *x = a, *y = b;
    if (x->text[0] != y->text[0]) return x->text[0] - y->text[0];
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->id > y->id) - (x->id < y->id);
}

void stk_added_finish(stk_added *a)
{
    stk_classes_load();
    if (a->n > 1) qsort(a->token, (size_t)a->n, sizeof(*a->token), compare);
    for (int byte = 0, i = 0; byte <= 256; byte++) {
        while (i < a->n && a->token[i].text[0] < byte)
            i++;
        a->first[byte] = i;
    }
}

void stk_added_free(stk_added *a)
{
    for (int i = 0; i < a->n; i++)
        free(a->token[i].text);
    free(a->token);
    *a = (stk_added){0};
}

/* The class of the character that ends before p; 0 at the start. */
static int class_before(const uint8_t *p, const uint8_t *start, const uint8_t **at)
{
    size_t n;
    *at = p;
    if (p == start) return 0;
    do
        --*at;
    while (*at > start && p - *at < 4 && (**at & 0xc0) == 0x80);
    return stk_class_at(*at, p, &n);
}

static bool stands_alone(stk_span text, const uint8_t *start, const uint8_t *end)
{
    const uint8_t *before;
    size_t n;
    if (class_before(start, text.data, &before) & STK_WORD) return false;
    return end == text.data + text.n || !(stk_class_at(end, text.data + text.n, &n) & STK_WORD);
}

static void take_spaces(stk_span text, const uint8_t *taken, int flags, stk_added_match *m)
{
    const uint8_t *before;
    size_t n;
    if (flags & STK_ADDED_LEFT)
        while (m->start > taken && class_before(m->start, taken, &before) & STK_SPACE)
            m->start = before;
    if (flags & STK_ADDED_RIGHT)
        while (m->end < text.data + text.n && (stk_class_at(m->end, text.data + text.n, &n) & STK_SPACE))
            m->end += n;
}

bool stk_added_next(const stk_added *a, stk_span text, const uint8_t *from, const uint8_t *taken, stk_added_match *out)
{
    const uint8_t *end = text.data + text.n;
    for (const uint8_t *p = from; a->n && p < end; p++) {
        for (int i = a->first[*p]; i < a->first[*p + 1]; i++) {
            const stk_added_token *token = &a->token[i];
            if (token->n > (size_t)(end - p) || memcmp(p, token->text, token->n)) continue;
            if (token->flags & STK_ADDED_WORD && !stands_alone(text, p, p + token->n)) {
                p += token->n - 1; /* what was found counts as read */
                break;
            }
            *out = (stk_added_match){p, p + token->n, p + token->n, token->id};
            take_spaces(text, taken, token->flags, out);
            return true;
        }
    }
    return false;
}

int32_t stk_added_find(const stk_added *a, stk_span text)
{
    if (text.n == 0) return -1;
    for (int i = a->first[text.data[0]]; i < a->first[text.data[0] + 1]; i++)
        if (a->token[i].n == text.n && !memcmp(a->token[i].text, text.data, text.n)) return a->token[i].id;
    return -1;
}

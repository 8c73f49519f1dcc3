/* See remote/listing.h. */
#include "data/remote/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { MOST_DEPTH = 8, MOST_NAME = 40 };

typedef struct parser {
    const char *start, *p, *end;
    char name[MOST_DEPTH][MOST_NAME]; /* of the open elements */
    int depth;
    const char *text; /* of the innermost element, as it stands; NULL once it holds others */
    stk_text key, etag, size, truncated, *next;
    stk_listed_fn fn;
    void *user;
} parser;

static stk_status corrupt(const parser *x, const char *what)
{
    return stk_fail(STK_CORRUPT, "the list of objects is no XML as it should be: %s at byte %zu", what,
                    (size_t)(x->p - x->start));
}

/* --- text --- */

/* A character by its number, in UTF-8. */
static bool add_character(unsigned long c, stk_text *out)
{
    unsigned char b[4];
    if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return false;
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        b[i] = (unsigned char)(0x80 | (c & 63));
    b[0] = (unsigned char)(n == 1 ? c : (0xF00u >> n & 0xFFu) | c);
    stk_text_add_bytes(out, b, (size_t)n);
    return true;
}

/* "&lt;" or "&#10;" or "&#xA;" at p. Bytes of it; 0: it is none. */
static size_t add_entity(const char *p, size_t n, stk_text *out)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    char number[12], *number_end;
    const char *semicolon = memchr(p, ';', n < sizeof(number) ? n : sizeof(number));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t m = strlen(known[i].name);
        if (n < m || memcmp(p, known[i].name, m) != 0) continue;
        stk_text_add_bytes(out, &known[i].c, 1);
        return m;
    }
    if (!semicolon || n < 4 || p[1] != '#') return 0;
    bool is_hex = p[2] == 'x';
    const char *digits = p + (is_hex ? 3 : 2);
    size_t n_digits = (size_t)(semicolon - digits);
    if (semicolon <= digits) return 0;
    memcpy(number, digits, n_digits);
    number[n_digits] = 0;
    if (number[0] == '-' || number[0] == '+' || number[0] == ' ') return 0;
    unsigned long c = strtoul(number, &number_end, is_hex ? 16 : 10);
    return !*number_end && add_character(c, out) ? (size_t)(semicolon - p) + 1 : 0;
}

static stk_status decode(const parser *x, const char *p, const char *end, stk_text *out)
{
    stk_text_free(out);
    while (p < end) {
        const char *mark = memchr(p, '&', (size_t)(end - p));
        if (!mark) mark = end;
        if (memchr(p, 0, (size_t)(mark - p))) return corrupt(x, "a zero byte");
        stk_text_add_bytes(out, p, (size_t)(mark - p));
        p = mark;
        if (p == end) break;
        size_t n = add_entity(p, (size_t)(end - p), out);
        if (n == 0) return corrupt(x, "an entity that is not known");
        p += n;
    }
    return stk_text_status(out);
}

/* --- elements --- */

static bool is_at(const parser *x, int depth, const char *a, const char *b)
{
    return x->depth == depth && !strcmp(x->name[1], a) && (depth < 3 || !strcmp(x->name[2], b));
}

static stk_status give_object(parser *x)
{
    stk_listed object = {.key = stk_text_get(&x->key), .etag = stk_text_get(&x->etag)};
    const char *size = stk_text_get(&x->size);
    char *end;
    object.n_bytes = strtoull(size, &end, 10);
    if (!object.key[0] || size[0] < '0' || size[0] > '9' || *end || object.n_bytes > INT64_MAX)
        return corrupt(x, "an object without a key or size");
    STK_RETURN_IF_ERROR(x->fn(x->user, &object));
    stk_text_free(&x->key);
    stk_text_free(&x->etag);
    stk_text_free(&x->size);
    return STK_OK;
}

/* The innermost element ends before `end`. */
static stk_status take_element(parser *x, const char *end)
{
    stk_text *out = NULL;
    if (is_at(x, 2, "Contents", NULL)) return give_object(x);
    if (is_at(x, 3, "Contents", "Key")) out = &x->key;
    if (is_at(x, 3, "Contents", "Size")) out = &x->size;
    if (is_at(x, 3, "Contents", "ETag")) out = &x->etag;
    if (is_at(x, 2, "IsTruncated", NULL)) out = &x->truncated;
    if (is_at(x, 2, "NextContinuationToken", NULL)) out = x->next;
    if (!out) return STK_OK;
    return x->text ? decode(x, x->text, end, out) : corrupt(x, "elements where text should be");
}

static bool is_name_end(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '/' || c == '>';
}

/* p at the first character of the name. */
static stk_status open_element(parser *x)
{
    size_t n = 0;
    char quote = 0;
    while (x->p + n < x->end && !is_name_end(x->p[n]))
        n++;
    if (x->depth == MOST_DEPTH) return corrupt(x, "elements nested too deep");
    if (n == 0 || n >= MOST_NAME) return corrupt(x, "no name of an element");
    memcpy(x->name[x->depth], x->p, n);
    x->name[x->depth++][n] = 0;
    if (x->depth == 1 && strcmp(x->name[0], "ListBucketResult") != 0) return corrupt(x, "another document");
    for (x->p += n; x->p < x->end && (quote || *x->p != '>'); x->p++) {
        if (quote ? *x->p == quote : *x->p == '"' || *x->p == '\'')
            quote = quote ? 0 : *x->p;
        else if (!quote && *x->p == '<')
            return corrupt(x, "a tag in a tag");
    }
    if (x->p == x->end) return corrupt(x, "its end");
    bool is_empty = x->p[-1] == '/';
    x->text = ++x->p;
    if (!is_empty) return STK_OK;
    STK_RETURN_IF_ERROR(take_element(x, x->p));
    x->depth--;
    x->text = NULL;
    return STK_OK;
}

/* p after the "</" that begins at `mark`. */
static stk_status close_element(parser *x, const char *mark)
{
    const char *name = x->depth ? x->name[x->depth - 1] : "";
    size_t n = strlen(name);
    if (n == 0 || (size_t)(x->end - x->p) <= n || memcmp(x->p, name, n) != 0 || x->p[n] != '>')
        return corrupt(x, "an end of another element");
    STK_RETURN_IF_ERROR(take_element(x, mark));
    x->p += n + 1;
    x->depth--;
    x->text = NULL;
    return STK_OK;
}

static void skip_space(parser *x)
{
    while (x->p < x->end && (*x->p == ' ' || *x->p == '\t' || *x->p == '\r' || *x->p == '\n'))
        x->p++;
}

static stk_status skip_declaration(parser *x)
{
    skip_space(x);
    if (x->end - x->p < 5 || memcmp(x->p, "<?xml", 5) != 0) return STK_OK;
    const char *end = memmem(x->p, (size_t)(x->end - x->p), "?>", 2);
    if (!end) return corrupt(x, "a declaration without end");
    x->p = end + 2;
    skip_space(x);
    return STK_OK;
}

static stk_status parse(parser *x)
{
    STK_RETURN_IF_ERROR(skip_declaration(x));
    do {
        const char *mark = memchr(x->p, '<', (size_t)(x->end - x->p));
        if (!mark || (x->depth == 0 && mark != x->p)) return corrupt(x, "no element");
        x->p = mark + 1;
        bool is_end = x->p < x->end && *x->p == '/';
        if (x->p < x->end && (*x->p == '!' || *x->p == '?')) return corrupt(x, "something else than an element");
        if (is_end) x->p++;
        STK_RETURN_IF_ERROR(is_end ? close_element(x, mark) : open_element(x));
    } while (x->depth > 0);
    skip_space(x);
    return x->p == x->end ? STK_OK : corrupt(x, "more after the end");
}

stk_status stk_listing_parse(stk_span xml, stk_listed_fn fn, void *user, stk_text *next)
{
    const char *start = xml.data ? (const char *)xml.data : "";
    parser x = {.start = start, .p = start, .end = start + xml.n, .next = next, .fn = fn, .user = user};
    *next = (stk_text){0};
    stk_status status = parse(&x);
    bool is_cut = !strcmp(stk_text_get(&x.truncated), "true");
    if (status == STK_OK && is_cut && !next->n) status = corrupt(&x, "no token for the part that follows");
    if (!is_cut) stk_text_free(next);
    stk_text_free(&x.key);
    stk_text_free(&x.etag);
    stk_text_free(&x.size);
    stk_text_free(&x.truncated);
    return status;
}

/* See data/source/braces.h. */
#include "data/source/braces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/source/paths.h"

enum { MOST_DIGITS = 15, MOST_PATHS = 1 << 20 };

/* What stands between two braces. */
typedef struct part {
    const char *inside; /* [n] */
    size_t n;
    bool is_range;
    long long from, to;
    int width; /* of a number at least */
} part;

static bool read_number(const char *text, size_t n, long long *out)
{
    char digits[MOST_DIGITS + 1] = "";
    if (n < 1 || n > MOST_DIGITS || strspn(text, "0123456789") < n) return false;
    memcpy(digits, text, n);
    *out = strtoll(digits, NULL, 10);
    return true;
}

static bool is_part(const char *inside, size_t n, part *out)
{
    *out = (part){.inside = inside, .n = n};
    if (memchr(inside, '{', n)) return false;
    if (memchr(inside, ',', n)) return true;
    for (size_t i = 1; i + 2 < n && !out->is_range; i++) {
        if (inside[i] != '.' || inside[i + 1] != '.') continue;
        const char *last = inside + i + 2;
        size_t n_last = n - i - 2;
        out->is_range = read_number(inside, i, &out->from) && read_number(last, n_last, &out->to);
        if (inside[0] == '0' || last[0] == '0') out->width = (int)(i > n_last ? i : n_last);
    }
    return out->is_range;
}

/* The first braces that mean something; NULL: there are none. */
static const char *find_part(const char *path, part *out)
{
    for (const char *open = strchr(path, '{'); open; open = strchr(open + 1, '{')) {
        const char *close = strchr(open, '}');
        if (!close) return NULL;
        if (is_part(open + 1, (size_t)(close - open - 1), out)) return open;
    }
    return NULL;
}

static stk_status add(const char *path, const part *p, const char *item, size_t n_item, stk_names *out,
                      size_t *capacity)
{
    const char *rest = p->inside + p->n + 1;
    size_t before = (size_t)(p->inside - 1 - path), n_rest = strlen(rest);
    char *made = malloc(before + n_item + n_rest + 1);
    if (!made) return stk_fail_memory(before + n_item + n_rest + 1);
    memcpy(made, path, before);
    memcpy(made + before, item, n_item);
    memcpy(made + before + n_item, rest, n_rest + 1);
    stk_status status = stk_braces_expand(made, out, capacity);
    free(made);
    return status;
}

static stk_status add_range(const char *path, const part *p, stk_names *out, size_t *capacity)
{
    long long step = p->from <= p->to ? 1 : -1;
    for (long long i = p->from;; i += step) {
        char item[32];
        int n = snprintf(item, sizeof(item), "%0*lld", p->width, i);
        STK_RETURN_IF_ERROR(add(path, p, item, (size_t)n, out, capacity));
        if (i == p->to) return STK_OK;
    }
}

static stk_status add_list(const char *path, const part *p, stk_names *out, size_t *capacity)
{
    const char *item = p->inside, *end = p->inside + p->n;
    for (;;) {
        const char *comma = memchr(item, ',', (size_t)(end - item));
        size_t n = (size_t)((comma ? comma : end) - item);
        STK_RETURN_IF_ERROR(add(path, p, item, n, out, capacity));
        if (!comma) return STK_OK;
        item = comma + 1;
    }
}

stk_status stk_braces_expand(const char *path, stk_names *out, size_t *capacity)
{
    part p;
    if (out->n >= MOST_PATHS)
        return stk_fail(STK_UNSUPPORTED, "the braces of '%s' make more than %d paths", path, MOST_PATHS);
    if (!find_part(path, &p)) return stk_names_add(out, capacity, path);
    return p.is_range ? add_range(path, &p, out, capacity) : add_list(path, &p, out, capacity);
}

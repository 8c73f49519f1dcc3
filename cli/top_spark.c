#include <math.h>
#include <string.h>

#include "top.h"

enum { MOST_CURVES = 64 };

typedef struct curve {
    int64_t id, used; /* used: when last, so that the oldest gives way */
    double value[TOP_SPARK];
    int n;
} curve;

static curve curves[MOST_CURVES];
static int64_t n_uses;

static curve *find(int64_t id)
{
    for (int i = 0; i < MOST_CURVES; i++)
        if (curves[i].used > 0 && curves[i].id == id) return &curves[i];
    return NULL;
}

void top_spark_add(int64_t id, double share)
{
    curve *c = find(id);
    if (!c) {
        c = &curves[0];
        for (int i = 1; i < MOST_CURVES; i++)
            if (curves[i].used < c->used) c = &curves[i];
        memset(c, 0, sizeof(*c));
        c->id = id;
    }
    c->used = ++n_uses;
    if (c->n == TOP_SPARK) memmove(c->value, c->value + 1, --c->n * sizeof(c->value[0]));
    c->value[c->n++] = share;
}

const char *top_spark_text(int64_t id, char out[TOP_SPARK_TEXT])
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"},
                             *const ascii[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    const char *const *marks = cli_shows_utf8() ? blocks : ascii;
    const curve *c = find(id);
    int n = c ? c->n : 0;
    out[0] = 0;
    for (int i = n; i < TOP_SPARK; i++)
        strcat(out, " ");
    for (int i = 0; i < n; i++) {
        double x = c->value[i];
        strcat(out, x >= 0 ? marks[(int)fmin(7, 8 * x)] : " ");
    }
    return out;
}

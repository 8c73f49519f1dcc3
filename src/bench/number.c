#include "bench/number.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>

/* What is read, and the digits without what parts them. */
typedef struct reader {
    const char *text;
    size_t n, at, n_plain;
    char plain[64];
} reader;

static char look(const reader *r, size_t ahead)
{
    return r->at + ahead < r->n ? r->text[r->at + ahead] : 0;
}

static bool is_digit(const reader *r, size_t ahead)
{
    return isdigit((unsigned char)look(r, ahead)) != 0;
}

static void take(reader *r)
{
    if (r->n_plain + 1 < sizeof(r->plain)) r->plain[r->n_plain++] = look(r, 0);
    r->at++;
}

/* Returns how many there are. */
static int take_digits(reader *r)
{
    int n = 0;
    for (; is_digit(r, 0); n++)
        take(r);
    return n;
}

static bool is_group(const reader *r)
{
    char c = look(r, 0);
    return (c == ',' || c == '_') && is_digit(r, 1) && is_digit(r, 2) && is_digit(r, 3) && !is_digit(r, 4);
}

size_t stk_bench_read_number(const char *text, size_t n, double *out)
{
    reader r = {.text = text, .n = n};
    while (isspace((unsigned char)look(&r, 0)))
        r.at++;
    if (look(&r, 0) == '-' || look(&r, 0) == '+') take(&r);
    int digits = take_digits(&r);
    while (digits > 0 && digits <= 3 && is_group(&r)) {
        r.at++;
        take_digits(&r);
    }
    if (look(&r, 0) == '.' && (is_digit(&r, 1) || digits > 0)) {
        take(&r);
        digits += take_digits(&r);
    }
    size_t sign = look(&r, 1) == '-' || look(&r, 1) == '+';
    if (digits > 0 && (look(&r, 0) == 'e' || look(&r, 0) == 'E') && is_digit(&r, 1 + sign)) {
        for (size_t i = 0; i <= sign; i++)
            take(&r);
        take_digits(&r);
    }
    char next = look(&r, 0);
    bool goes_on = (next == ',' || next == '.' || next == '_') && is_digit(&r, 1);
    if (digits == 0 || goes_on || r.n_plain + 1 == sizeof(r.plain)) return 0;
    r.plain[r.n_plain] = 0;
    *out = strtod(r.plain, NULL);
    return r.at;
}

/* See codec/csv.h. */
#include "data/codec/csv.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/thread.h"

enum { MOST_NUMBER_BYTES = 128 };

/* --- cells --- */

/* A cell that begins with a quote at p. *n_used: the bytes of it, quotes included. */
static stk_status cut_quoted(stk_span rest, uint8_t quote, uint8_t *work, stk_span *cell, size_t *n_used)
{
    size_t n = 0, i = 1;
    bool doubled = false;
    for (; i < rest.n; i++) {
        if (rest.data[i] == quote) {
            if (i + 1 == rest.n || rest.data[i + 1] != quote) break;
            doubled = true;
            i++;
        }
        work[n++] = rest.data[i];
    }
    if (i >= rest.n) return stk_fail(STK_CORRUPT, "a quoted cell does not end");
    *cell = doubled ? (stk_span){work, n} : (stk_span){rest.data + 1, n};
    *n_used = i + 1;
    return STK_OK;
}

static size_t plain_bytes(stk_span rest, uint8_t delimiter)
{
    size_t i = 0;
    while (i < rest.n && rest.data[i] != delimiter && rest.data[i] != '\n')
        i++;
    return i;
}

static bool is_end(stk_span rest)
{
    return rest.n == 0 || rest.data[0] == '\n' || (rest.n > 1 && rest.data[0] == '\r' && rest.data[1] == '\n') ||
           (rest.n == 1 && rest.data[0] == '\r');
}

stk_status stk_csv_cells(stk_span row, const stk_cells *how, uint8_t *work, stk_span *cell, int room, int *n_cells)
{
    const uint8_t delimiter = (uint8_t)how->delimiter;
    stk_span rest = row;
    *n_cells = 0;
    for (bool more = true; more;) {
        stk_span found;
        size_t n = 0;
        if (how->quote && rest.n && rest.data[0] == (uint8_t)how->quote) {
            STK_RETURN_IF_ERROR(cut_quoted(rest, (uint8_t)how->quote, work, &found, &n));
            work += found.n;
            rest = (stk_span){rest.data + n, rest.n - n};
            if (!is_end(rest) && rest.data[0] != delimiter)
                return stk_fail(STK_CORRUPT, "cell %d goes on after its last quote", *n_cells + 1);
        } else {
            n = plain_bytes(rest, delimiter);
            found = (stk_span){rest.data, n};
            rest = (stk_span){rest.data + n, rest.n - n};
            if (is_end(rest) && n && found.data[n - 1] == '\r') found.n--;
        }
        more = !is_end(rest);
        if (more) rest = (stk_span){rest.data + 1, rest.n - 1};
        if (*n_cells < room) cell[*n_cells] = found;
        ++*n_cells;
    }
    return STK_OK;
}

/* --- numbers --- */

static locale_t plain_locale; /* where the decimal point is a point */
static void make_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static stk_span trim(stk_span text)
{
    while (text.n && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = (stk_span){text.data + 1, text.n - 1};
    while (text.n && (text.data[text.n - 1] == ' ' || text.data[text.n - 1] == '\t'))
        text.n--;
    return text;
}

static stk_status fail_number(stk_span cell, const char *what)
{
    return stk_fail(STK_CORRUPT, "'%.*s' is %s", (int)(cell.n < 60 ? cell.n : 60), (const char *)cell.data, what);
}

/* Up to 15 digits with a point among them: exact numerator and power of ten, so that one division rounds once. */
static bool parse_short(stk_span text, double *out)
{
    static const double ten[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool negative = text.n && text.data[0] == '-', point = false;
    int64_t digits = 0;
    int n_digits = 0, n_behind = 0;
    for (size_t i = negative; i < text.n; i++) {
        uint8_t c = text.data[i];
        if (c == '.' && !point) {
            point = true;
        } else if (c >= '0' && c <= '9' && n_digits < 15) {
            digits = 10 * digits + (c - '0');
            n_digits++;
            n_behind += point;
        } else {
            return false;
        }
    }
    double value = (double)digits / ten[n_behind];
    *out = negative ? -value : value;
    return n_digits > 0;
}

/* Halfway between two floats the double may have been rounded there. */
static bool is_halfway(double value)
{
    return (double)(float)value != value && fabs(value - (double)(float)value) > 0 &&
           (double)nextafterf((float)value, value > (double)(float)value ? INFINITY : -INFINITY) - value ==
               value - (double)(float)value;
}

static stk_status parse_real(stk_span text, bool is_f32, double *out)
{
    static stk_once once = STK_ONCE_INIT;
    char copy[MOST_NUMBER_BYTES], *end;
    if (parse_short(text, out) && !(is_f32 && is_halfway(*out))) return STK_OK;
    if (text.n == 0 || text.n >= sizeof(copy) || memchr(text.data, 0, text.n)) return fail_number(text, "not a number");
    memcpy(copy, text.data, text.n);
    copy[text.n] = 0;
    stk_once_run(&once, make_locale);
    if (!plain_locale) return stk_fail(STK_NO_MEMORY, "cannot make a locale to read numbers in");
    /* strtod takes leading spaces of all kinds, and hexadecimal numbers. */
    bool starts_well = strchr("+-.0123456789iInN", copy[0]) && !strpbrk(copy, "xX");
    *out = is_f32 ? (double)strtof_l(copy, &end, plain_locale) : strtod_l(copy, &end, plain_locale);
    return starts_well && *end == 0 ? STK_OK : fail_number(text, "not a number");
}

static stk_status parse_whole(stk_span text, int64_t least, int64_t most, int64_t *out)
{
    bool negative = text.n && text.data[0] == '-';
    size_t i = text.n && (text.data[0] == '-' || text.data[0] == '+');
    int64_t value = 0;
    if (i == text.n) return fail_number(text, "no whole number");
    for (; i < text.n; i++) {
        int digit = text.data[i] - '0';
        if (digit < 0 || digit > 9) return fail_number(text, "no whole number");
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return fail_number(text, "out of range");
    }
    *out = value;
    return value < least || value > most ? fail_number(text, "out of range") : STK_OK;
}

static stk_status parse_bool(stk_span text, uint8_t *out)
{
    const char *s = (const char *)text.data;
    *out = text.n == 1 ? s[0] == '1' : text.n == 4;
    if (text.n == 1 && (s[0] == '0' || s[0] == '1')) return STK_OK;
    if ((text.n == 4 && !strncasecmp(s, "true", 4)) || (text.n == 5 && !strncasecmp(s, "false", 5))) return STK_OK;
    return fail_number(text, "not 0, 1, false or true");
}

stk_status stk_csv_number(stk_span cell, stk_dtype dtype, void *element)
{
    stk_span text = trim(cell);
    double real = 0;
    int64_t whole = 0;
    if (dtype == STK_BOOL) return parse_bool(text, element);
    if (dtype == STK_F32 || dtype == STK_F64) {
        STK_RETURN_IF_ERROR(parse_real(text, dtype == STK_F32, &real));
        if (dtype == STK_F32)
            *(float *)element = (float)real;
        else
            *(double *)element = real;
        return STK_OK;
    }
    int64_t most = dtype == STK_I64 ? INT64_MAX : dtype == STK_I32 ? INT32_MAX : dtype == STK_I8 ? INT8_MAX : UINT8_MAX;
    int64_t least = dtype == STK_U8 ? 0 : -most - 1;
    STK_RETURN_IF_ERROR(parse_whole(text, least, most, &whole));
    if (dtype == STK_I64)
        *(int64_t *)element = whole;
    else if (dtype == STK_I32)
        *(int32_t *)element = (int32_t)whole;
    else
        *(int8_t *)element = (int8_t)whole;
    return STK_OK;
}

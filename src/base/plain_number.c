/* See plain_number.h. */
#include "base/plain_number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* As a whole number in groups of three. */
static const char *whole_text(double x, char out[STK_PLAIN_TEXT])
{
    char count[STK_COUNT_TEXT];
    snprintf(out, STK_PLAIN_TEXT, "%s%s", x < 0 ? "-" : "", stk_count_text((int64_t)(fabs(x) + 0.5), count));
    return out;
}

/* "1e-05" as "1e-5". */
static void drop_zeros(char *text)
{
    char *e = strchr(text, 'e');
    if (!e) return;
    e += e[1] == '-' ? 2 : 1;
    size_t n = strspn(e, "+0");
    memmove(e, e + n, strlen(e + n) + 1);
}

const char *stk_plain_number(double x, char out[STK_PLAIN_TEXT])
{
    if (isnan(x)) return strcpy(out, "NaN");
    if (fabs(x) >= 999.95 && fabs(x) < 1e15) return whole_text(x, out);
    snprintf(out, STK_PLAIN_TEXT, "%.4g", x);
    drop_zeros(out);
    return out;
}

const char *stk_plain_loss(double x, char out[STK_PLAIN_TEXT])
{
    if (x != 0 && (fabs(x) < 0.001 || fabs(x) >= 999.95)) return stk_plain_number(x, out);
    if (isnan(x)) return strcpy(out, "NaN");
    snprintf(out, STK_PLAIN_TEXT, "%.4f", x);
    return out;
}

const char *stk_plain_rate(double x, char out[STK_PLAIN_TEXT])
{
    if (!isfinite(x) || fabs(x) >= 1e15 || (x != 0 && fabs(x) < 0.0995)) return stk_plain_number(x, out);
    if (fabs(x) >= 99.5) return whole_text(x, out);
    snprintf(out, STK_PLAIN_TEXT, "%.*f", x == 0 ? 0 : fabs(x) >= 9.95 ? 1 : 2, x);
    return out;
}

static const char *scaled(double x, double base, const char *const *units, int n, char out[STK_PLAIN_TEXT])
{
    int i = 0;
    while (i + 1 < n && x >= base * 0.9995) {
        x /= base;
        i++;
    }
    /* Three digits say enough. */
    snprintf(out, STK_PLAIN_TEXT, "%.*f %s", i == 0 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, units[i]);
    return out;
}

const char *stk_plain_bytes(double bytes, char out[STK_PLAIN_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return scaled(bytes, 1024, units, 5, out);
}

const char *stk_plain_flops(double flops, char out[STK_PLAIN_TEXT])
{
    static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
    return scaled(flops, 1000, units, 5, out);
}

const char *stk_plain_duration(double s, char out[STK_PLAIN_TEXT])
{
    if (!(s >= 0) || s > 1e9) {
        snprintf(out, STK_PLAIN_TEXT, "?");
        return out;
    }
    int64_t total = (int64_t)(s + 0.5), hours = total / 3600, minutes = total / 60 % 60, seconds = total % 60;
    if (hours > 0)
        snprintf(out, STK_PLAIN_TEXT, "%" PRId64 ":%02d:%02d", hours, (int)minutes, (int)seconds);
    else if (minutes > 0)
        snprintf(out, STK_PLAIN_TEXT, "%d:%02d", (int)minutes, (int)seconds);
    else
        snprintf(out, STK_PLAIN_TEXT, "%.*f s", s < 9.95 ? 1 : 0, s);
    return out;
}

const char *stk_plain_time(double s, char out[STK_PLAIN_TEXT])
{
    static const char *const units[] = {"s", "ms", "us", "ns"};
    int i = 0;
    if (!isfinite(s) || s < 0) return stk_plain_duration(-1, out);
    while (i < 3 && s > 0 && s < 0.9995) {
        s *= 1000;
        i++;
    }
    snprintf(out, STK_PLAIN_TEXT, "%.*f %s", s >= 99.95 ? 0 : s >= 9.995 ? 1 : 2, s, units[i]);
    return out;
}

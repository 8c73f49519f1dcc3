#include "watch/compare.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { N_PARTS = 20, LEAST_PARTS = 8 };

typedef struct estimate {
    double mean, variance, n; /* of the mean */
} estimate;

/* Means of equally long parts of the time that counts. */
static estimate find_mean(const stk_watch_report *report, size_t offset)
{
    const stk_watch_history *h = report->history;
    double sum[N_PARTS] = {0}, length[N_PARTS] = {0};
    double begin = report->signals.begin_s, all = report->signals.end_s - begin;
    estimate e = {0, 0, 0};
    for (size_t i = 0; i < h->n; i++) {
        double x = *(const double *)((const char *)&h->row[i] + offset);
        double at = (h->row[i].at_s - h->row[i].length_s / 2 - begin) / all;
        if (!isfinite(x) || !(at >= 0) || at >= 1) continue;
        int k = (int)(at * N_PARTS);
        sum[k] += x * h->row[i].length_s;
        length[k] += h->row[i].length_s;
    }
    for (int k = 0; k < N_PARTS; k++) {
        if (!(length[k] > 0)) continue;
        e.n++;
        e.mean += sum[k] / length[k];
    }
    e.mean = e.n > 0 ? e.mean / e.n : NAN;
    for (int k = 0; k < N_PARTS; k++)
        if (length[k] > 0) e.variance += pow(sum[k] / length[k] - e.mean, 2);
    e.variance = e.n > 1 ? e.variance / (e.n - 1) / e.n : NAN;
    return e;
}

/* Student's t for 95 %, two-sided; within 1 % for 4 degrees and more (expansion in 1 / degrees: Abramowitz and Stegun
 * 26.7.5). */
static double student(double degrees)
{
    const double z = 1.959964;
    double z3 = z * z * z, z5 = z3 * z * z;
    return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees);
}

int stk_watch_compare(const stk_watch_report *a, const stk_watch_report *b,
                      stk_watch_difference out[STK_WATCH_DIFFERENCES])
{
    static const struct {
        const char *name;
        size_t offset;
    } what[] = {{"gpu_busy", offsetof(stk_watch_row, gpu_busy)},
                {"power", offsetof(stk_watch_row, power)},
                {"sm", offsetof(stk_watch_row, sm)},
                {"cores", offsetof(stk_watch_row, cores)},
                {"waited", offsetof(stk_watch_row, waited)},
                {"disk_wait", offsetof(stk_watch_row, disk_wait)},
                {"asked_mbs", offsetof(stk_watch_row, asked_mbs)}};
    int n = 0;
    for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
        estimate x = find_mean(a, what[i].offset), y = find_mean(b, what[i].offset);
        if (!isfinite(x.mean) || !isfinite(y.mean)) continue;
        stk_watch_difference d = {what[i].name, x.mean, y.mean, NAN, NAN};
        double variance = x.variance + y.variance;
        if (x.n >= LEAST_PARTS && y.n >= LEAST_PARTS && isfinite(variance)) {
            double degrees =
                variance > 0
                    ? variance * variance / (x.variance * x.variance / (x.n - 1) + y.variance * y.variance / (y.n - 1))
                    : x.n;
            double half = student(degrees) * sqrt(variance);
            d.low = y.mean - x.mean - half;
            d.high = y.mean - x.mean + half;
        }
        out[n++] = d;
    }
    return n;
}

/* The device's use decides: GPUs where both runs have them, or else cores. */
static const stk_watch_difference *find_main(const stk_watch_difference *d, int n)
{
    const stk_watch_difference *cores = NULL;
    for (int i = 0; i < n; i++) {
        if (d[i].name[0] == 'g') return &d[i];
        if (d[i].name[0] == 'c') cores = &d[i];
    }
    return cores;
}

/* Cores say nothing of a job that mostly sleeps: neither its driving thread works nor whom that waits for. */
static bool sleeps(const stk_watch_report *report)
{
    static const stk_watch_signal work[] = {
        STK_WATCH_by_compute, STK_WATCH_by_host,  STK_WATCH_by_kernel,  STK_WATCH_by_faults, STK_WATCH_by_thread,
        STK_WATCH_by_workers, STK_WATCH_by_turns, STK_WATCH_by_balance, STK_WATCH_by_pool,   STK_WATCH_by_compiling};
    const double *x = report->signals.value;
    double sum = 0;
    for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++)
        sum += isnan(x[work[i]]) ? 0 : x[work[i]];
    return x[STK_WATCH_account] > 0.5 && sum < 0.5;
}

static const char commands_differ[] = "the commands differ: of two jobs this says nothing";

static bool have_commands_that_differ(const stk_watch_report *a, const stk_watch_report *b)
{
    const char *of_a = stk_watch_facts_get(a->facts, "command", 0), *of_b = stk_watch_facts_get(b->facts, "command", 0);
    return of_a && of_b && strcmp(of_a, of_b) != 0;
}

/* Why the result is not known, for people; NULL: it is, or too little was seen. */
static const char *find_reason(const stk_watch_report *a, const stk_watch_report *b, const stk_watch_difference *d)
{
    return d && d->name[0] == 'c' && (sleeps(a) || sleeps(b)) ? "a job that mostly sleeps needs few" : NULL;
}

static const char *find_word(const stk_watch_report *a, const stk_watch_report *b, const stk_watch_difference *d)
{
    if (!d || isnan(d->low) || find_reason(a, b, d)) return "unknown";
    return d->low > 0 ? "better" : d->high < 0 ? "worse" : "no difference shown";
}

void stk_watch_compare_text(const stk_watch_report *a, const stk_watch_report *b, stk_text *out)
{
    stk_watch_difference d[STK_WATCH_DIFFERENCES];
    int n = stk_watch_compare(a, b, d);
    const stk_watch_difference *main = find_main(d, n);
    stk_text_add(out, "  %-12s %10s %10s   %s\n", "", "before", "after", "difference, 95 % interval");
    for (int i = 0; i < n; i++) {
        stk_text_add(out, "  %-12s %10.3g %10.3g   ", d[i].name, d[i].a, d[i].b);
        if (isnan(d[i].low))
            stk_text_add(out, "%+.3g (too short for an interval)\n", d[i].b - d[i].a);
        else
            stk_text_add(out, "%+.3g (%+.3g to %+.3g)\n", d[i].b - d[i].a, d[i].low, d[i].high);
    }
    stk_text_add(out, "  %-12s %10.1f %10.1f   s\n", "watched", a->length_s, b->length_s);
    stk_text_add(out, "  %-12s %s -> %s\n", "verdict", a->n_verdicts ? a->verdict[0].rule->name : "none",
                 b->n_verdicts ? b->verdict[0].rule->name : "none");
    if (have_commands_that_differ(a, b)) stk_text_add(out, "  %-12s %s\n", "note", commands_differ);
    const char *reason = find_reason(a, b, main);
    stk_text_add(out, "  %-12s %s%s%s%s%s\n", "result", find_word(a, b, main), main ? ", by " : "",
                 main ? main->name : "", reason ? ": " : "", reason ? reason : "");
}

static void add_run(const char *name, const stk_watch_report *report, stk_text *out)
{
    stk_text_add(out, ", \"%s\": {\"verdict\": ", name);
    if (report->n_verdicts)
        stk_text_add(out, "\"%s\"", report->verdict[0].rule->name);
    else
        stk_text_add(out, "null");
    stk_text_add(out, ", \"watched_s\": %.3f, \"judged_from_s\": %.3f, \"judged_to_s\": %.3f}", report->length_s,
                 report->signals.begin_s, report->signals.end_s);
}

void stk_watch_compare_json(const stk_watch_report *a, const stk_watch_report *b, stk_text *out)
{
    stk_watch_difference d[STK_WATCH_DIFFERENCES];
    int n = stk_watch_compare(a, b, d);
    const stk_watch_difference *main = find_main(d, n);
    const char *reason = find_reason(a, b, main);
    stk_text_add(out, "{\"result\": \"%s\", \"by\": \"%s\"", find_word(a, b, main), main ? main->name : "");
    if (reason)
        stk_text_add(out, ", \"reason\": \"%s\"", reason);
    else
        stk_text_add(out, ", \"reason\": null");
    stk_text_add(out, ", \"same_command\": %s", have_commands_that_differ(a, b) ? "false" : "true");
    add_run("before", a, out);
    add_run("after", b, out);
    stk_text_add(out, ", \"differences\": [");
    for (int i = 0; i < n; i++) {
        stk_text_add(out, "%s{\"name\": \"%s\", \"before\": %.6g, \"after\": %.6g, ", i ? ", " : "", d[i].name, d[i].a,
                     d[i].b);
        if (isnan(d[i].low))
            stk_text_add(out, "\"interval\": null}");
        else
            stk_text_add(out, "\"interval\": [%.6g, %.6g]}", d[i].low, d[i].high);
    }
    stk_text_add(out, "]}\n");
}

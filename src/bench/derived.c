#include "bench/derived.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/tell.h"

enum { MOST_REPLICAS = 4096 };
/* Above this share of what a maker publishes it is an error: clocks may be a little higher than he counts with. */
static const double MARGIN = 1.02;

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

stk_bench_roof stk_bench_measured_roof(const json_t *root, const char *precision)
{
    stk_bench_roof roof = {NAN, NAN};
    const json_t *from;
    size_t i;
    json_array_foreach(json_object_get(root, "cases"), i, from)
    {
        double value = stk_bench_number_at(from, "summary.median.value");
        if (!strcmp(text_at(from, "unit"), "GFLOP/s") && !strcmp(text_at(from, "precision"), precision))
            roof.flop_per_s = fmax(roof.flop_per_s, value * 1e9); /* NaN gives way */
        if (!strcmp(text_at(from, "unit"), "GB/s") && !strncmp(text_at(from, "name"), "memory", 6))
            roof.byte_per_s = fmax(roof.byte_per_s, value * 1e9);
    }
    return roof;
}

stk_bench_roof stk_bench_published_roof(const json_t *root, const char *precision)
{
    char place[64];
    snprintf(place, sizeof(place), "machine.published.%.16s_tflop_per_s", precision);
    return (stk_bench_roof){stk_bench_number_at(root, place) * 1e12,
                            stk_bench_number_at(root, "machine.published.bandwidth_gb_per_s") * 1e9};
}

bool stk_bench_read_training(const json_t *root, const json_t *from, double metric[STK_BENCH_N_METRICS],
                             stk_bench_use *use)
{
    const char *precision = text_at(from, "precision");
    double n = stk_bench_number_at(from, "replicas");
    stk_bench_metrics_parse(json_object_get(json_object_get(from, "summary"), "metrics"), metric);
    if (isnan(metric[STK_BENCH_METRIC_step_s])) return false;
    *use = stk_bench_use_of(metric, n >= 1 && n <= MOST_REPLICAS ? (int)n : 1,
                            stk_bench_published_roof(root, precision), stk_bench_measured_roof(root, precision));
    return true;
}

stk_bench_interval stk_bench_efficiency(stk_bench_interval one, stk_bench_interval many, int n)
{
    return (stk_bench_interval){many.value / (n * one.value), many.low / (n * one.high), many.high / (n * one.low)};
}

stk_bench_interval stk_bench_rate_of(const json_t *from)
{
    double n = strcmp(text_at(from, "scaling"), "weak") ? 1 : stk_bench_number_at(from, "replicas");
    double value = stk_bench_number_at(from, "summary.median.value"),
           low = stk_bench_number_at(from, "summary.median.low"),
           high = stk_bench_number_at(from, "summary.median.high");
    if (strcmp(text_at(from, "better"), "less")) return (stk_bench_interval){value, low, high};
    return (stk_bench_interval){n / value, n / high, n / low};
}

bool stk_bench_scaling_of(const stk_bench_kept *kept, int i, stk_bench_interval *out)
{
    const json_t *cases = json_object_get(kept->root, "cases"), *from = json_array_get(cases, (size_t)i), *other;
    const char *mode = text_at(from, "scaling");
    double n = stk_bench_number_at(from, "replicas");
    size_t k;
    if (!mode[0] || !(n > 1 && n <= MOST_REPLICAS)) return false;
    json_array_foreach(cases, k, other)
    {
        if (strcmp(text_at(other, "scaling"), mode) || stk_bench_number_at(other, "replicas") != 1) continue;
        *out = stk_bench_efficiency(stk_bench_rate_of(other), stk_bench_rate_of(from), (int)n);
        return true;
    }
    return false;
}

/* Without intervals, of one run each, chance is in both. */
static bool is_above_all(stk_bench_interval e)
{
    return isfinite(e.low) ? e.low > 1 : e.value > 1.05;
}

const char *stk_bench_impossible(const stk_bench_kept *kept, int i, char out[STK_BENCH_SENTENCE])
{
    const json_t *from = json_array_get(json_object_get(kept->root, "cases"), (size_t)i);
    double m[STK_BENCH_N_METRICS];
    stk_bench_interval e;
    stk_bench_use use;
    if (stk_bench_scaling_of(kept, i, &e) && is_above_all(e)) {
        snprintf(out, STK_BENCH_SENTENCE,
                 "an efficiency of %.0f %% cannot be: one replica ran under other conditions, or did other work",
                 100 * e.value);
        return out;
    }
    if (stk_bench_read_training(kept->root, from, m, &use) && use.of_published > MARGIN) {
        snprintf(out, STK_BENCH_SENTENCE,
                 "%.0f %% of the published peak cannot be: it counts other work or other chips",
                 100 * use.of_published);
        return out;
    }
    return NULL;
}

/* --- how far it can be trusted --- */

/* A line that is being written, and who takes it. */
typedef struct writer {
    stk_text line, *out;
    stk_bench_put_line *put;
} writer;

static void end_line(writer *w)
{
    if (stk_text_status(&w->line) == STK_OK)
        w->put(w->out, stk_text_get(&w->line));
    else
        w->out->failed = true;
    stk_text_free(&w->line);
}

static void add_marks(const stk_bench_kept *kept, writer *w)
{
    enum { MOST_MARKED = 100000 };
    int n[STK_BENCH_N_MARKS] = {0}, n_all = 0;
    for (int i = 0; i < kept->n_cases; i++)
        for (int k = 0; k < STK_BENCH_N_MARKS; k++) {
            char place[64];
            snprintf(place, sizeof(place), "summary.marks.%.40s", stk_bench_mark_name(k));
            double count = stk_bench_number_at(json_array_get(json_object_get(kept->root, "cases"), (size_t)i), place);
            if (!(count >= 0 && count <= MOST_MARKED)) continue;
            n[k] += (int)count;
            n_all += (int)count;
        }
    if (kept->is_disturbed)
        stk_text_add(&w->line,
                     "Disturbed: something else had a part in most rounds, so that all of them count. Differences "
                     "between cases that ran in turns still tell something; the figures themselves belong to a "
                     "machine that was disturbed.");
    else if (n_all)
        stk_text_add(&w->line, "Rounds in which something else had a part are not counted.");
    else
        stk_text_add(&w->line, "Nothing that can be seen disturbed a run.");
    end_line(w);
    for (int k = 0; k < STK_BENCH_N_MARKS; k++) {
        if (!n[k]) continue;
        stk_text_add(&w->line, "%d run%s with the mark %s: %s", n[k], n[k] == 1 ? "" : "s", stk_bench_mark_name(k),
                     stk_bench_mark_text(k));
        end_line(w);
    }
}

void stk_bench_trust(const stk_bench_kept *kept, stk_bench_put_line *put, stk_text *out)
{
    writer w = {.out = out, .put = put};
    const json_t *from;
    size_t i;
    int n_short = 0;
    add_marks(kept, &w);
    json_array_foreach(json_object_get(kept->root, "cases"), i, from)
    {
        const json_t *summary = json_object_get(from, "summary");
        n_short += kept->cases[i].n < STK_BENCH_LEAST_RUNS;
        if (!json_is_true(json_object_get(summary, "trend"))) continue;
        stk_text_add(&w.line, "%s is not steady: %+.1f %% from the first run to the last", kept->cases[i].name,
                     100 * stk_bench_number_at(summary, "trend_share"));
        end_line(&w);
    }
    if (n_short) {
        stk_text_add(&w.line,
                     "%d case%s fewer than %d runs that count, too few for an interval: a single run can be anything",
                     n_short, n_short == 1 ? " has" : "s have", STK_BENCH_LEAST_RUNS);
        end_line(&w);
    }
    json_array_foreach(json_object_get(kept->root, "left_out"), i, from)
    {
        stk_text_add(&w.line, "Left out: %s", json_string_value(from) ? json_string_value(from) : "");
        end_line(&w);
    }
    for (int k = 0; k < STK_BENCH_N_ENDS; k++) {
        if (strcmp(text_at(kept->root, "ended"), stk_bench_end_name((stk_bench_end)k)) != 0) continue;
        stk_text_add(&w.line, "Measuring ended when %s.", stk_bench_end_text((stk_bench_end)k));
        end_line(&w);
    }
}

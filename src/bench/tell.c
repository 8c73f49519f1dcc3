#include "bench/tell.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_number.h"
#include "base/printable.h"
#include "base/secret.h"

const char *stk_bench_figure_text(double x, const char *unit, char out[STK_BENCH_FIGURE])
{
    char text[STK_PLAIN_TEXT];
    if (!isfinite(x))
        snprintf(out, STK_BENCH_FIGURE, "?");
    else if (!strcmp(unit, "s"))
        snprintf(out, STK_BENCH_FIGURE, "%s", stk_plain_time(x, text));
    else
        snprintf(out, STK_BENCH_FIGURE, "%s %.24s", stk_plain_number(x, text), unit);
    return out;
}

/* The change of the figure as one of speed: how much longer it takes, or how much less it delivers. */
const char *stk_bench_verdict_text(const stk_bench_comparison *c, const char *a, const char *b, bool less_is_better,
                                   char out[STK_BENCH_SENTENCE])
{
    const char *noun = c->is_paired ? "pairs" : "runs";
    char more[128] = "";
    int n = 0;
    if (c->verdict) {
        double sign = c->change.value < 0 ? -1 : 1, low = sign * c->change.low, high = sign * c->change.high;
        snprintf(out, STK_BENCH_SENTENCE, "'%.80s' is %s than '%.80s': %s %.2f %% %s (%.2f to %.2f %%; 95 %%, %d %s)",
                 b, c->verdict > 0 ? "faster" : "slower", a, less_is_better ? "it takes" : "it gives",
                 100 * fabs(c->change.value), c->change.value < 0 ? "less" : "more", 100 * fmin(low, high),
                 100 * fmax(low, high), c->n, noun);
        return out;
    }
    if (isfinite(c->decision.low) && c->is_paired && (c->change.low > 0 || c->change.high < 0))
        n = snprintf(more, sizeof(more), "; the 99 %% interval, which decides, has 0 in it");
    if (c->n_further > 0) {
        char count[STK_COUNT_TEXT];
        snprintf(more + n, sizeof(more) - (size_t)n, "; %s more would tell a difference of this size",
                 stk_count_text(c->n_further, count));
    }
    if (isnan(c->decision.low))
        snprintf(out, STK_BENCH_SENTENCE, "no difference shown between '%.80s' and '%.80s': %d %s are too few to tell",
                 a, b, c->n, noun);
    else
        snprintf(out, STK_BENCH_SENTENCE,
                 "no difference shown between '%.80s' and '%.80s': '%.80s' %s from %+.2f to %+.2f %% (95 %%, %d %s%s)",
                 a, b, b, less_is_better ? "takes" : "gives", 100 * c->change.low, 100 * c->change.high, c->n, noun,
                 more);
    return out;
}

const char *stk_bench_kept_verdict_text(const stk_bench_kept *kept, const stk_bench_comparison *c,
                                        char out[STK_BENCH_SENTENCE])
{
    const stk_bench_kept_case *a = &kept->cases[c->a], *b = &kept->cases[c->b];
    return stk_bench_verdict_text(c, a->name, b->name, a->less_is_better, out);
}

static const char *case_name(const stk_bench_case *c, char out[256])
{
    char hidden[4096];
    return stk_printable(stk_hide_secrets(c->name, hidden, sizeof(hidden)), out, 256);
}

static void add_marks(const stk_bench *bench, stk_text *out)
{
    int n[STK_BENCH_N_MARKS] = {0}, n_marked = 0;
    for (int i = 0; i < bench->n_cases; i++) {
        n_marked += bench->cases[i].summary.n_marked;
        for (int k = 0; k < STK_BENCH_N_MARKS; k++)
            n[k] += bench->cases[i].summary.n_marks[k];
    }
    if (!n_marked) return;
    stk_text_add(
        out, "marked    %d run%s%s\n", n_marked, n_marked == 1 ? "" : "s",
        bench->is_disturbed
            ? " in most rounds, so that all count and the figures are disturbed: end what disturbs, measure again"
        : bench->plan.counts_marked ? ", which are counted as asked for"
                                    : ", which are not counted");
    for (int k = 0; k < STK_BENCH_N_MARKS; k++)
        if (n[k]) stk_text_add(out, "          %s, %d: %s\n", stk_bench_mark_name(k), n[k], stk_bench_mark_text(k));
}

static void add_case(const stk_bench *bench, const stk_bench_case *c, stk_text *out)
{
    const stk_bench_summary *s = &c->summary;
    char name[256], a[STK_BENCH_FIGURE], b[STK_BENCH_FIGURE], t[5][STK_PLAIN_TEXT];
    stk_text_add(out, "%s\n", case_name(c, name));
    if (!s->n) {
        stk_text_add(out, "  no run counts\n");
        return;
    }
    stk_text_add(out, "  median  %s", stk_bench_figure_text(s->median.value, c->unit, a));
    if (isfinite(s->median.low))
        stk_text_add(out, " (%s to %s, 95 %%)", stk_bench_figure_text(s->median.low, c->unit, a),
                     stk_bench_figure_text(s->median.high, c->unit, b));
    else
        stk_text_add(out, " (%d run%s too few for an interval)", s->n, s->n == 1 ? " is" : "s are");
    stk_text_add(out, ", %d run%s after %d to warm up\n", s->n, s->n == 1 ? "" : "s", s->n_warmup);
    stk_text_add(out, "  range   %s to %s", stk_bench_figure_text(s->least, c->unit, a),
                 stk_bench_figure_text(s->most, c->unit, b));
    if (s->n_outliers)
        stk_text_add(out, ", %d outlier%s further than 1.5 quartile ranges from the quartiles, counted", s->n_outliers,
                     s->n_outliers == 1 ? "" : "s");
    stk_text_add(out, "\n  run     %s, user %s, system %s; the first one %s; memory %s\n",
                 stk_plain_time(s->wall_s, t[0]), stk_plain_time(s->user_s, t[1]), stk_plain_time(s->system_s, t[2]),
                 stk_plain_time(s->first_s, t[3]), stk_plain_bytes(s->resident_kb * 1024, t[4]));
    if (isfinite(s->joules))
        stk_text_add(out, "  energy  %s J a run, of the whole machine\n", stk_plain_number(s->joules, t[0]));
    if (s->has_trend)
        stk_text_add(out, "  trend   %+.1f %% from the first run to the last: it is not steady\n",
                     100 * s->trend_share);
    if (s->block > 1)
        stk_text_add(out, "  runs hang together for about %d in a row, which the interval takes into account\n",
                     s->block);
    if (s->n_further > 0)
        stk_text_add(out, "  %" PRId64 " more runs would make the interval as narrow as +-%.3g %%\n", s->n_further,
                     100 * bench->plan.precision);
}

/* Of commands that take long for the time that was given. */
static void add_time_wanted(const stk_bench *bench, stk_text *out)
{
    int n_least = INT_MAX, n_rounds = 0;
    for (int i = 0; i < bench->n_cases; i++) {
        n_least = bench->cases[i].summary.n < n_least ? bench->cases[i].summary.n : n_least;
        n_rounds = bench->cases[i].n_runs > n_rounds ? bench->cases[i].n_runs : n_rounds;
    }
    if (bench->end != STK_BENCH_END_time || n_least >= bench->plan.least_rounds || !n_rounds) return;
    double each_s = bench->seconds / n_rounds, n_wanted = bench->plan.least_rounds + bench->plan.least_warmups;
    stk_text_add(out, "          %d runs%s would take --seconds %.0f\n", bench->plan.least_rounds,
                 bench->n_cases > 1 ? " of each" : "", ceil(1.1 * n_wanted * each_s));
}

void stk_bench_tell_text(const stk_bench *bench, const stk_bench_about *about, stk_text *out)
{
    char sentence[STK_BENCH_SENTENCE], a[256], b[256], text[STK_PLAIN_TEXT];
    for (int i = 0; i < bench->n_cases; i++)
        add_case(bench, &bench->cases[i], out);
    add_marks(bench, out);
    stk_text_add(out, "ended     %s, after %s\n", stk_bench_end_text(bench->end),
                 stk_plain_duration(bench->seconds, text));
    add_time_wanted(bench, out);
    if (bench->no_energy) stk_text_add(out, "energy    not measured: %s\n", bench->no_energy);
    for (int i = 0; i < about->n_comparisons; i++) {
        const stk_bench_comparison *c = &about->comparison[i];
        const stk_bench_case *first = &bench->cases[c->a], *second = &bench->cases[c->b];
        stk_text_add(
            out, "%s\n",
            stk_bench_verdict_text(c, case_name(first, a), case_name(second, b), first->less_is_better, sentence));
    }
}

#include "bench/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/new_file.h"
#include "base/plain_number.h"
#include "bench/page_parts.h"
#include "bench/tell.h"
#include "report/chart.h"
#include "report/style.h"

/* The mark of such pages, too: others are not replaced. */
#define BEGIN                                                                                                          \
    "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport "                                      \
    "content=\"width=device-width\"><title>stoker bench: "

/* A bar on a scale from 0 to the greatest, with the interval as a line over it. */
enum { BAR_WIDTH = 300, BAR_HEIGHT = 16 };

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *x = json_object_get(object, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

static void add_text(stk_text *out, const char *begin, const char *text, const char *end)
{
    stk_text_add(out, "%s", begin);
    stk_html_add(out, text);
    stk_text_add(out, "%s", end);
}

static const json_t *cases_of(const stk_bench_kept *kept)
{
    return json_object_get(kept->root, "cases");
}

/* --- what was found --- */

static void add_bar(stk_text *out, const json_t *median, double most)
{
    double value = number_at(median, "value"), low = number_at(median, "low"), high = number_at(median, "high");
    if (!(most > 0) || !isfinite(value)) return;
    stk_text_add(
        out,
        "<svg viewBox=\"0 0 %d %d\" style=\"width:%dpx;max-width:100%%\" role=img aria-label=\"median with its "
        "interval\"><rect x=0 y=3 width=%.1f height=10 rx=2 style=\"fill:var(--s0)\" />",
        BAR_WIDTH, BAR_HEIGHT, BAR_WIDTH, value / most * BAR_WIDTH);
    if (isfinite(low))
        stk_text_add(
            out,
            "<path d=\"M%.1f 8H%.1fM%.1f 2V14M%.1f 2V14\" style=\"stroke:var(--ink);stroke-width:1.5;fill:none\" />",
            low / most * BAR_WIDTH, high / most * BAR_WIDTH, low / most * BAR_WIDTH, high / most * BAR_WIDTH);
    stk_text_add(out, "</svg>");
}

/* Cases that can be set next to each other: of one unit, and, in a suite, of one first word. */
static bool is_alike(const json_t *a, const json_t *b)
{
    const char *x = text_at(a, "name"), *y = text_at(b, "name");
    size_t n = strcspn(x, " ,");
    if (strcmp(text_at(a, "unit"), text_at(b, "unit"))) return false;
    return !text_at(a, "about")[0] || (n == strcspn(y, " ,") && !strncmp(x, y, n));
}

/* The greatest end of an interval among cases that are alike, for one scale. */
static double scale_of(const json_t *cases, const json_t *wanted)
{
    const json_t *from;
    size_t i;
    double most = 0;
    json_array_foreach(cases, i, from)
    {
        const json_t *median = json_object_get(json_object_get(from, "summary"), "median");
        if (!is_alike(wanted, from)) continue;
        most = fmax(most, fmax(number_at(median, "value"), number_at(median, "high")));
    }
    return most;
}

static void add_row(stk_text *out, const json_t *cases, const json_t *from, int i_result, size_t i)
{
    char a[STK_BENCH_FIGURE], t[STK_PLAIN_TEXT];
    const json_t *summary = json_object_get(from, "summary"), *median = json_object_get(summary, "median");
    const char *unit = text_at(from, "unit"), *about = text_at(from, "about");
    double low = number_at(median, "low"), high = number_at(median, "high"), value = number_at(median, "value");
    stk_text_add(out,
                 "<tr><td style=\"white-space:normal;min-width:min(280px,38vw)\"><a href=\"#r%dc%zu\" "
                 "style=\"color:inherit\">",
                 i_result, i);
    add_text(out, "", text_at(from, "name"), "</a>");
    if (about[0]) add_text(out, "<br><span class=dim>", about, "</span>");
    stk_text_add(out, "</td><td class=n>");
    add_text(out, "<b>", stk_bench_figure_text(value, unit, a),
             "</b><br><span class=dim style=\"white-space:normal\">");
    if (isfinite(low)) {
        bool is_time = !strcmp(unit, "s");
        stk_html_add(out, is_time ? stk_plain_time(low, t) : stk_plain_number(low, t));
        stk_text_add(out, " to ");
        stk_html_add(out, is_time ? stk_plain_time(high, t) : stk_plain_number(high, t));
        stk_text_add(out, ", &plusmn;%.2g&nbsp;%%", 50 * (high - low) / value);
    } else {
        stk_text_add(out, "too few runs for an interval");
    }
    stk_text_add(out, "</span></td><td style=\"min-width:120px\">");
    add_bar(out, median, 1.01 * scale_of(cases, from)); /* the interval's end stays inside */
    stk_text_add(out, "</td><td class=n>%.0f", number_at(summary, "counted_runs"));
    double n_marked = number_at(summary, "marked_runs"), n_outliers = number_at(summary, "outliers");
    if (n_marked > 0) stk_text_add(out, "<br><span class=dim>%.0f marked</span>", n_marked);
    if (n_outliers > 0)
        stk_text_add(out, "<br><span class=dim>%.0f outlier%s</span>", n_outliers, n_outliers > 1 ? "s" : "");
    stk_text_add(out, "</td><td class=n>%s</td>", stk_plain_time(number_at(summary, "first_run_s"), t));
    double joules = number_at(summary, "joules"), of_gpus = number_at(summary, "gpu_joules");
    if (isfinite(of_gpus))
        stk_text_add(out, "<td class=n>%s J of GPUs</td></tr>\n", stk_plain_number(of_gpus, t));
    else if (isfinite(joules))
        stk_text_add(out, "<td class=n>%s J</td></tr>\n", stk_plain_number(joules, t));
    else
        stk_text_add(out, "<td class=\"n dim\">not measured</td></tr>\n");
}

static void add_found(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    const json_t *cases = cases_of(kept), *from;
    size_t i;
    stk_text_add(
        out,
        "<table><tr><th>Case</th><th class=n>Median and interval</th><th></th><th class=n>Runs</th><th class=n>First "
        "run</th><th class=n>Energy a run</th></tr>\n");
    json_array_foreach(cases, i, from)
    {
        add_row(out, cases, from, i_result, i);
    }
    stk_text_add(out,
                 "</table>\n<p class=dim>Each case was run again and again, in turns with the others. The median is "
                 "its middle run, in bold; the interval is where the middle of endlessly many runs lies, in 95 of "
                 "100 cases, and is the line over the bar. Bars of like cases have one scale from 0. A run is "
                 "marked where something else had a part in it. The first run found everything cold. A name leads "
                 "to its runs.</p>\n");
}

static stk_bench_interval interval_at(const json_t *object, const char *key)
{
    const json_t *i = json_object_get(object, key);
    return (stk_bench_interval){number_at(i, "value"), number_at(i, "low"), number_at(i, "high")};
}

static void add_verdicts(stk_text *out, const stk_bench_kept *kept)
{
    const json_t *list = json_object_get(kept->root, "comparisons"), *from;
    char sentence[STK_BENCH_SENTENCE];
    size_t i;
    if (!json_array_size(list)) return;
    stk_text_add(out, "<h3>Which is faster</h3><ul>\n");
    json_array_foreach(list, i, from)
    {
        const char *verdict = text_at(from, "verdict");
        double a = number_at(from, "from"), b = number_at(from, "to"), further = number_at(from, "further_runs");
        double n_pairs = number_at(from, "pairs");
        if (!(a >= 0 && a < kept->n_cases && b >= 0 && b < kept->n_cases && n_pairs >= 0 && n_pairs < 1e9)) continue;
        stk_bench_comparison c = {.a = (int)a,
                                  .b = (int)b,
                                  .is_paired = json_is_true(json_object_get(from, "paired")),
                                  .change = interval_at(from, "change"),
                                  .n = (int)n_pairs,
                                  .n_further = further >= 0 && further < 1e15 ? (int64_t)further : -1,
                                  .verdict = !strcmp(verdict, "better")  ? 1
                                             : !strcmp(verdict, "worse") ? -1
                                                                         : 0};
        const stk_bench_kept_case *first = &kept->cases[c.a], *second = &kept->cases[c.b];
        add_text(out, "<li>", stk_bench_verdict_text(&c, first->name, second->name, first->less_is_better, sentence),
                 "</li>\n");
    }
    stk_text_add(out, "</ul>\n");
}

static void add_quality(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    const json_t *cases = cases_of(kept), *from;
    enum { MOST_MARKED = 100000 };
    int n[STK_BENCH_N_MARKS] = {0}, n_all = 0;
    size_t i;
    json_array_foreach(cases, i, from)
    {
        const json_t *marks = json_object_get(json_object_get(from, "summary"), "marks");
        for (int k = 0; k < STK_BENCH_N_MARKS; k++) {
            json_int_t count = json_integer_value(json_object_get(marks, stk_bench_mark_name(k)));
            if (count < 0 || count > MOST_MARKED) continue;
            n[k] += (int)count;
            n_all += (int)count;
        }
    }
    stk_text_add(out, "<h3 id=trust%d>How far it can be trusted</h3><ul>\n<li>", i_result);
    if (kept->is_disturbed)
        stk_text_add(
            out,
            "<b>Disturbed:</b> something else had a part in most rounds, so that all of them count. Differences "
            "between "
            "cases that ran in turns still tell something; the figures themselves belong to a machine that was busy.");
    else if (n_all)
        stk_text_add(out, "Rounds in which something else had a part are not counted.");
    else
        stk_text_add(out, "Nothing that can be seen disturbed a run.");
    stk_text_add(out, "</li>\n");
    for (int k = 0; k < STK_BENCH_N_MARKS; k++)
        if (n[k])
            stk_text_add(out, "<li>%d runs with the mark <b>%s</b>: %s</li>\n", n[k], stk_bench_mark_name(k),
                         stk_bench_mark_text(k));
    json_array_foreach(cases, i, from)
    {
        const json_t *summary = json_object_get(from, "summary");
        if (!json_is_true(json_object_get(summary, "trend"))) continue;
        add_text(out, "<li>", text_at(from, "name"), " is not steady: ");
        stk_text_add(out, "%+.1f %% from the first run to the last</li>\n", 100 * number_at(summary, "trend_share"));
    }
    for (int k = 0; k < STK_BENCH_N_ENDS; k++)
        if (!strcmp(text_at(kept->root, "ended"), stk_bench_end_name((stk_bench_end)k)))
            stk_text_add(out, "<li>Measuring ended when %s.</li>\n", stk_bench_end_text((stk_bench_end)k));
    stk_text_add(out, "</ul>\n");
}

/* --- each run --- */

/* Figures by the number of the run: those that count, and the others. out of memory: out fails. */
static void add_curve(stk_text *out, const json_t *from)
{
    const json_t *runs = json_object_get(from, "runs"), *run;
    size_t i, n = json_array_size(runs);
    double *x = malloc((n + 1) * 3 * sizeof(double));
    if (!x) {
        out->failed = true;
        return;
    }
    double *counted = x + n + 1, *others = counted + n + 1;
    json_array_foreach(runs, i, run)
    {
        bool counts = json_is_true(json_object_get(run, "counted"));
        x[i] = (double)i + 1;
        counted[i] = counts ? number_at(run, "figure") : NAN;
        others[i] = counts ? NAN : number_at(run, "figure");
    }
    stk_series series[] = {
        {.x = x, .y = counted, .n = (int)n, .color = 0, .dots = true, .label = "counts"},
        {.x = x, .y = others, .n = (int)n, .color = 1, .dots = true, .label = "warm-up, or with a mark"}};
    char title[128];
    snprintf(title, sizeof(title), "each run, in %.40s", text_at(from, "unit"));
    stk_chart chart = {.title = title, .x_label = "run", .series = series, .n_series = 2};
    stk_text_add(out, "<div class=charts>");
    stk_chart_add(out, &chart);
    stk_text_add(out, "</div>\n");
    free(x);
}

static void add_run(stk_text *out, const json_t *run, const char *unit)
{
    char a[STK_BENCH_FIGURE], t[STK_PLAIN_TEXT];
    const json_t *marks = json_object_get(run, "marks"), *during = json_object_get(run, "during"), *mark;
    size_t i;
    stk_text_add(out, "<tr><td class=n>%.0f</td><td class=n>", number_at(run, "number") + 1);
    stk_html_add(out, stk_bench_figure_text(number_at(run, "figure"), unit, a));
    stk_text_add(out, "</td><td class=n>%s</td>", stk_plain_time(number_at(run, "wall_s"), t));
    stk_text_add(out, "<td class=n>%s</td><td>%s%s",
                 stk_plain_time(number_at(run, "user_s") + number_at(run, "system_s"), t),
                 json_is_true(json_object_get(run, "warm_up"))   ? "warm-up"
                 : json_is_true(json_object_get(run, "counted")) ? "counts"
                                                                 : "left out",
                 json_is_true(json_object_get(run, "outlier")) ? ", outlier" : "");
    json_array_foreach(marks, i, mark)
    {
        add_text(out, ", ", json_string_value(mark), "");
    }
    double others = number_at(during, "neighbour_cores");
    if (isfinite(others))
        stk_text_add(out, "</td><td class=n>%.2f</td></tr>\n", others);
    else
        stk_text_add(out, "</td><td class=\"n dim\">?</td></tr>\n");
}

static void add_case(stk_text *out, const json_t *from, int i_result, size_t i)
{
    const json_t *words = json_object_get(from, "command"), *word, *runs = json_object_get(from, "runs"), *run;
    size_t k;
    stk_text_add(out, "<section id=r%dc%zu><h3>", i_result, i);
    add_text(out, "", text_at(from, "name"), "</h3><pre>");
    json_array_foreach(words, k, word)
    {
        add_text(out, k ? " " : "", json_string_value(word), "");
    }
    stk_text_add(out, "</pre>\n");
    add_curve(out, from);
    stk_text_add(out,
                 "<details><summary>All %zu runs</summary><table><tr><th class=n>Run</th><th class=n>Figure</th><th "
                 "class=n>Time</th><th class=n>Processor</th><th></th><th class=n>Cores of others</th></tr>\n",
                 json_array_size(runs));
    json_array_foreach(runs, k, run)
    {
        add_run(out, run, text_at(from, "unit"));
    }
    stk_text_add(out, "</table></details></section>\n");
}

/* --- conditions --- */

static void add_value(stk_text *out, const json_t *value)
{
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    if (json_is_null(value) || !value)
        stk_text_add(out, "<span class=dim>cannot be read here</span>");
    else if (json_is_string(value))
        stk_html_add(out, json_string_value(value));
    else if (text)
        stk_html_add(out, text);
    free(text);
}

static void add_conditions(stk_text *out, const stk_bench_kept *kept)
{
    const char *key;
    json_t *value;
    json_t *machine = json_object_get(kept->root, "machine"), *before = json_object_get(kept->root, "before");
    const json_t *after = json_object_get(kept->root, "after");
    stk_text_add(out, "<h3>The machine</h3><table>\n");
    json_object_foreach(machine, key, value)
    {
        add_text(out, "<tr><td>", key, "</td><td style=\"overflow-wrap:anywhere\">");
        add_value(out, value);
        stk_text_add(out, "</td></tr>\n");
    }
    stk_text_add(out, "</table><h3>Before and after</h3><table><tr><th></th><th>Before</th><th>After</th></tr>\n");
    json_object_foreach(before, key, value)
    {
        add_text(out, "<tr><td>", key, "</td><td>");
        add_value(out, value);
        stk_text_add(out, "</td><td>");
        add_value(out, json_object_get(after, key));
        stk_text_add(out, "</td></tr>\n");
    }
    add_text(out, "</table><p class=dim>Energy: ", text_at(kept->root, "energy"), "</p>\n");
}

/* What must be read before the figures. */
static void add_warning(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    static const char begin[] =
        "<p style=\"border-left:4px solid var(--s1);background:var(--back);padding:10px 14px;max-width:none\"><b>";
    if (kept->is_disturbed)
        stk_text_add(
            out,
            "%sThese figures were disturbed.</b> Something else used the machine during most rounds, so that "
            "they say more about that than about the machine. <a href=\"#trust%d\" style=\"color:inherit\">What "
            "it was</a>; better: end it, and measure again.</p>\n",
            begin, i_result);
    else if (json_is_true(json_object_get(json_object_get(kept->root, "settings"), "counts_marked")))
        stk_text_add(out, "%sRuns with marks are counted,</b> as was asked for.</p>\n", begin);
}

static void add_result(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    const json_t *from;
    size_t i;
    char t[STK_PLAIN_TEXT];
    add_text(out, i_result ? "<header style=\"margin-top:56px\"><h1>" : "<header><h1>", text_at(kept->root, "name"),
             "</h1><p class=sub>");
    add_text(out, "", text_at(json_object_get(kept->root, "machine"), "processor"), ", ");
    add_text(out, "", text_at(kept->root, "date"), ", ");
    stk_text_add(out, "%s in all, Stoker ", stk_plain_duration(number_at(kept->root, "seconds"), t));
    add_text(out, "", text_at(kept->root, "stoker"), "</p></header>\n<section>");
    add_warning(out, kept, i_result);
    add_found(out, kept, i_result);
    add_verdicts(out, kept);
    stk_bench_page_scaling(out, kept, i_result);
    stk_bench_page_trainings(out, kept, i_result);
    stk_bench_page_roofline(out, kept);
    add_quality(out, kept, i_result);
    stk_text_add(out, "</section><h2>Each run</h2>\n");
    json_array_foreach(cases_of(kept), i, from)
    {
        add_case(out, from, i_result, i);
    }
    stk_text_add(out, "<section><h2>Conditions</h2>\n");
    add_conditions(out, kept);
    stk_text_add(out, "</section>\n");
}

void stk_bench_page_add(const stk_bench_kept *kept, int n, stk_text *out)
{
    add_text(out, BEGIN, text_at(kept[0].root, "name"),
             "</title><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
             "'unsafe-inline'\"><style>");
    stk_text_add(out, "%s</style></head><body>\n", stk_report_style);
    for (int i = 0; i < n; i++)
        add_result(out, &kept[i], i);
    stk_text_add(out, "<p class=dim>The median is shown with its 95 %% interval by a bootstrap of the runs that "
                      "count. Outliers lie further "
                      "than 1.5 quartile ranges from the quartiles; they are counted. Something is called faster "
                      "where the 99 %% interval of "
                      "the difference leaves out 0.</p></body></html>\n");
}

stk_status stk_bench_page_write(const stk_bench_kept *kept, int n, const char *path)
{
    stk_text out = {0};
    stk_status status = STK_OK;
    if (n < 1 || n > STK_BENCH_MOST_PAGE)
        return stk_fail(STK_INVALID, "a page is of 1 to %d results, not %d", STK_BENCH_MOST_PAGE, n);
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, "a page of 'stoker report --bench'", 0, BEGIN, strlen(BEGIN)));
    stk_bench_page_add(kept, n, &out);
    STK_TRY(stk_text_status(&out));
    STK_TRY(stk_dir_check_for(path));
    STK_TRY(stk_file_write_durably(path, stk_text_get(&out), out.n));
done:
    stk_text_free(&out);
    return status;
}

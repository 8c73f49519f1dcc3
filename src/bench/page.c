#include "bench/page.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/new_file.h"
#include "base/plain_number.h"
#include "bench/apart.h"
#include "bench/page_parts.h"
#include "bench/place.h"
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

void stk_bench_page_link(stk_text *out, int i_result, size_t i_case)
{
    stk_text_add(out, "<a href=\"#r%dc%zu\" style=\"color:inherit;text-decoration:none\">", i_result, i_case);
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

/* The greatest end of an interval among cases that are alike, for one scale; 0: there is nothing to compare with. */
static double scale_of(const json_t *cases, const json_t *wanted)
{
    int n_alike = 0;
    const json_t *from;
    size_t i;
    double most = 0;
    json_array_foreach(cases, i, from)
    {
        const json_t *median = json_object_get(json_object_get(from, "summary"), "median");
        if (!is_alike(wanted, from)) continue;
        most = fmax(most, fmax(number_at(median, "value"), number_at(median, "high")));
        n_alike++;
    }
    return n_alike > 1 ? most : 0;
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
    stk_bench_page_link(out, i_result, i);
    add_text(out, "<b>", stk_bench_figure_text(value, unit, a),
             "</b><br><span class=dim style=\"white-space:normal\">");
    if (isfinite(low)) {
        bool is_time = !strcmp(unit, "s");
        stk_html_add(out, is_time ? stk_plain_time(low, t) : stk_plain_number(low, t));
        stk_text_add(out, " to ");
        stk_html_add(out, is_time ? stk_plain_time(high, t) : stk_plain_number(high, t));
        double share = 50 * (high - low) / value;
        stk_text_add(out, share < 0.01 ? ", &plusmn;less than 0.01&nbsp;%%" : ", &plusmn;%.2g&nbsp;%%", share);
    } else {
        stk_text_add(out, "too few runs for an interval");
    }
    stk_text_add(out, "</span></a></td><td style=\"min-width:120px\">");
    stk_bench_page_link(out, i_result, i);
    add_bar(out, median, 1.01 * scale_of(cases, from)); /* the interval's end stays inside */
    stk_text_add(out, "</a></td><td class=n>");
    stk_bench_page_link(out, i_result, i);
    stk_text_add(out, "%.0f", number_at(summary, "counted_runs"));
    double n_marked = number_at(summary, "marked_runs"), n_outliers = number_at(summary, "outliers");
    if (n_marked > 0) stk_text_add(out, "<br><span class=dim>%.0f marked</span>", n_marked);
    if (n_outliers > 0)
        stk_text_add(out, "<br><span class=dim>%.0f outlier%s</span>", n_outliers, n_outliers > 1 ? "s" : "");
    stk_text_add(out, "</a></td><td class=n>");
    stk_bench_page_link(out, i_result, i);
    stk_text_add(out, "%s</a></td><td class=n>", stk_plain_time(number_at(summary, "first_run_s"), t));
    stk_bench_page_link(out, i_result, i);
    double joules = number_at(summary, "joules"), of_gpus = number_at(summary, "gpu_joules");
    if (isfinite(of_gpus))
        stk_text_add(out, "%s J of GPUs</a></td></tr>\n", stk_plain_number(of_gpus, t));
    else if (isfinite(joules))
        stk_text_add(out, "%s J</a></td></tr>\n", stk_plain_number(joules, t));
    else
        stk_text_add(out, "<span class=dim>not measured</span></a></td></tr>\n");
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
    stk_text_add(
        out, "</table>\n<p class=dim>Each case was run again and again, in turns with the others. The median is "
             "its middle run, in bold; the interval is where the middle of endlessly many runs lies, in 95 of "
             "100 cases, and is the line over the bar. Bars have one scale from 0 where the unit and the first word of "
             "the name are the same. A run is marked where something else had a part in it. The first run found "
             "everything cold; it is told by its whole time, whatever the figure is. Names and figures "
             "lead to their runs.</p>\n");
}

static void add_verdicts(stk_text *out, const stk_bench_kept *kept)
{
    char sentence[STK_BENCH_SENTENCE];
    stk_bench_comparison c;
    bool has_head = false;
    for (int i = 0; i < stk_bench_kept_n_comparisons(kept); i++) {
        if (!stk_bench_kept_comparison(kept, i, &c)) continue;
        if (!has_head) stk_text_add(out, "<h3>Which is faster</h3><ul>\n");
        has_head = true;
        add_text(out, "<li>", stk_bench_kept_verdict_text(kept, &c, sentence), "</li>\n");
    }
    if (has_head) stk_text_add(out, "</ul>\n");
}

/* Further results next to the first, case by case. Not enough memory for it: the page fails. */
static void add_apart(stk_text *out, const stk_bench_kept *kept, int n)
{
    stk_bench_apart apart = {.allowance = STK_BENCH_ALLOWANCE};
    char sentence[STK_BENCH_SENTENCE], folder[2][STK_BENCH_PLACE], name[STK_BENCH_PLACE];
    for (int i = 1; i < n; i++)
        if (stk_bench_apart_add(&apart, &kept[0], &kept[i], false) != STK_OK) out->failed = true;
    if (apart.n) stk_text_add(out, "<section><h2>Next to each other</h2><table>\n");
    for (int i = 0; i < apart.n; i++) {
        const stk_bench_apart_row *r = &apart.row[i];
        const stk_bench_kept_case *c = &r->a->cases[r->i_a];
        stk_text_add(out, "<tr><td>");
        stk_bench_page_link(out, (int)(r->a - kept), (size_t)r->i_a);
        add_text(out, "", stk_bench_apart_name(r, name), "</a></td><td style=\"white-space:normal\">");
        stk_bench_page_link(out, (int)(r->b - kept), (size_t)r->i_b);
        add_text(out, "",
                 stk_bench_verdict_text(&r->comparison, stk_bench_folder_of(r->a, folder[0]),
                                        stk_bench_folder_of(r->b, folder[1]), c->less_is_better, sentence),
                 "</a></td></tr>\n");
    }
    if (apart.n)
        stk_text_add(out,
                     "</table><p class=dim>Measured apart: a machine changes from hour to hour, so that less than %.3g "
                     "%% is not told.</p></section>\n",
                     100 * apart.allowance);
    stk_bench_apart_free(&apart);
}

static void add_item(stk_text *out, const char *line)
{
    add_text(out, "<li>", line, "</li>\n");
}

static void add_quality(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    stk_text_add(out, "<h3 id=trust%d>How far it can be trusted</h3><ul>\n", i_result);
    stk_bench_trust(kept, add_item, out);
    stk_text_add(out, "</ul>\n");
}

/* --- conditions --- */

/* What a key ends with is its unit. */
static const char *unit_of(const char *key, size_t *n_name)
{
    static const char *const units[][2] = {
        {"_kib", "KiB"}, {"_mhz", "MHz"}, {"_ns", "ns"}, {"_w", "W"}, {"_celsius", "\302\260C"}};
    size_t n = strlen(key);
    *n_name = n;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t length = strlen(units[i][0]);
        if (n <= length || strcmp(key + n - length, units[i][0]) != 0) continue;
        *n_name = n - length;
        return units[i][1];
    }
    return "";
}

/* "available memory" of "available_memory_kib", "GPU temperature" of "gpu_celsius". */
static void add_name(stk_text *out, const char *key)
{
    char name[64];
    size_t n;
    bool is_heat = !strcmp(unit_of(key, &n), "\302\260C"), is_gpu = !strncmp(key, "gpu", 3);
    snprintf(name, sizeof(name), "%s%.*s%s", is_gpu ? "GPU" : "", (int)(n < 40 ? n : 40) - (is_gpu ? 3 : 0),
             key + (is_gpu ? 3 : 0), is_heat ? " temperature" : "");
    for (char *p = name; *p; p++)
        if (*p == '_') *p = ' ';
    stk_html_add(out, name);
}

static void add_plain(stk_text *out, const char *key, const json_t *value)
{
    size_t n_name;
    const char *unit = unit_of(key, &n_name);
    char text[STK_PLAIN_TEXT];
    if (json_is_string(value))
        stk_html_add(out, json_string_value(value));
    else if (json_is_boolean(value))
        stk_text_add(out, json_is_true(value) ? "yes" : "no");
    else if (json_is_number(value) && !strcmp(unit, "KiB"))
        stk_html_add(out, stk_plain_bytes(json_number_value(value) * 1024, text));
    else if (json_is_number(value)) {
        stk_html_add(out, stk_plain_number(json_number_value(value), text));
        stk_text_add(out, "%s%s", unit[0] ? " " : "", unit);
    } else {
        char *all = json_dumps(value, JSON_ENCODE_ANY);
        if (all) stk_html_add(out, all);
        free(all);
    }
}

static void add_value(stk_text *out, const char *key, const json_t *value)
{
    const json_t *one;
    size_t i;
    if (!value || json_is_null(value))
        stk_text_add(out, "<span class=dim>cannot be read here</span>");
    else if (!json_is_array(value))
        add_plain(out, key, value);
    else if (json_array_size(value) == 0)
        stk_text_add(out, "<span class=dim>none</span>");
    else
        json_array_foreach(value, i, one)
        {
            stk_text_add(out, i ? "<br>" : "");
            add_plain(out, key, one);
        }
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
        stk_text_add(out, "<tr><td>");
        add_name(out, key);
        stk_text_add(out, "</td><td style=\"overflow-wrap:anywhere\">");
        add_value(out, key, value);
        stk_text_add(out, "</td></tr>\n");
    }
    stk_text_add(out, "</table><h3>Before and after</h3><table><tr><th></th><th>Before</th><th>After</th></tr>\n");
    json_object_foreach(before, key, value)
    {
        stk_text_add(out, "<tr><td>");
        add_name(out, key);
        stk_text_add(out, "</td><td>");
        add_value(out, key, value);
        stk_text_add(out, "</td><td>");
        add_value(out, key, json_object_get(after, key));
        stk_text_add(out, "</td></tr>\n");
    }
    add_text(out, "</table><p class=dim>Energy: ", text_at(kept->root, "energy"), "</p>\n");
}

/* What must be read before the figures. */
static void add_warning(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    static const char begin[] =
        "<p style=\"border-left:4px solid var(--s1);background:var(--back);padding:10px 14px;max-width:none\"><b>";
    int least = INT_MAX;
    for (int i = 0; i < kept->n_cases; i++)
        least = kept->cases[i].n < least ? kept->cases[i].n : least;
    if (kept->is_disturbed)
        stk_text_add(
            out,
            "%sThese figures were disturbed.</b> Something else had a part in most rounds, so that they may say more "
            "about that than about the machine. <a href=\"#trust%d\" style=\"color:inherit\">What it was</a>; "
            "better: end it where it can be ended, and measure again.</p>\n",
            begin, i_result);
    else if (json_is_true(json_object_get(json_object_get(kept->root, "settings"), "counts_marked")))
        stk_text_add(out, "%sRuns with marks are counted,</b> as was asked for.</p>\n", begin);
    if (kept->n_cases && least < STK_BENCH_LEAST_RUNS)
        stk_text_add(
            out,
            "%sToo few runs for an interval:</b> some case has %d that count. How far its median is off nobody "
            "knows; more time is <code>--seconds</code>.</p>\n",
            begin, least);
}

static void add_result(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    const json_t *from;
    size_t i;
    char t[STK_PLAIN_TEXT], folder[STK_BENCH_PLACE];
    add_text(out, i_result ? "<header style=\"margin-top:56px\"><h1>" : "<header><h1>", text_at(kept->root, "name"),
             "</h1><p class=sub>");
    add_text(out, "", stk_bench_folder_of(kept, folder), ": ");
    add_text(out, "", text_at(json_object_get(kept->root, "machine"), "processor"), ", ");
    add_text(out, "", text_at(kept->root, "date"), ", ");
    stk_text_add(out, "%s in all, Stoker ", stk_plain_duration(number_at(kept->root, "seconds"), t));
    add_text(out, "", text_at(kept->root, "stoker"), "</p></header>\n<section>");
    add_warning(out, kept, i_result);
    add_found(out, kept, i_result);
    add_verdicts(out, kept);
    stk_bench_page_scaling(out, kept, i_result);
    stk_bench_page_trainings(out, kept, i_result);
    stk_bench_page_curves(out, kept);
    stk_bench_page_roofline(out, kept);
    add_quality(out, kept, i_result);
    stk_text_add(out, "</section><h2>Each run</h2>\n");
    json_array_foreach(cases_of(kept), i, from)
    {
        stk_bench_page_case(out, from, i_result, i);
    }
    stk_text_add(out, "<section><h2>Conditions</h2>\n");
    add_conditions(out, kept);
    stk_text_add(out, "</section>\n");
}

stk_status stk_bench_page_add(const stk_bench_kept *kept, int n, const stk_bench_prices *prices, stk_text *out)
{
    add_text(out, BEGIN, text_at(kept[0].root, "name"),
             "</title><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
             "'unsafe-inline'\"><style>");
    stk_text_add(out, "%s</style></head><body>\n", stk_report_style);
    for (int i = 0; i < n; i++)
        add_result(out, &kept[i], i);
    add_apart(out, kept, n);
    if (prices) {
        stk_text_add(out, "<section><h2>What the money buys</h2>\n");
        STK_RETURN_IF_ERROR(stk_bench_prices_add(prices, out));
        stk_text_add(out, "</section>\n");
    }
    stk_text_add(out, "<p class=dim>The median is shown with its 95 %% interval by a bootstrap of the runs that "
                      "count. Outliers lie further "
                      "than 1.5 quartile ranges from the quartiles; they are counted. Something is called faster "
                      "where the 99 %% interval of "
                      "the difference leaves out 0.</p></body></html>\n");
    return stk_text_status(out);
}

stk_status stk_bench_page_write(const stk_bench_kept *kept, int n, const stk_bench_prices *prices, const char *path)
{
    stk_text out = {0};
    stk_status status = STK_OK;
    if (n < 1 || n > STK_BENCH_MOST_PAGE)
        return stk_fail(STK_INVALID, "a page is of 1 to %d results, not %d", STK_BENCH_MOST_PAGE, n);
    if (!stk_bench_is_page(path))
        return stk_fail(STK_UNSUPPORTED, "'%s': a page ends in .html, and a table in .md, .csv or .json", path);
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, "a page of 'stoker report --bench'", 0, BEGIN, strlen(BEGIN)));
    STK_TRY(stk_bench_page_add(kept, n, prices, &out));
    STK_TRY(stk_dir_check_for(path));
    STK_TRY(stk_file_write_durably(path, stk_text_get(&out), out.n));
done:
    stk_text_free(&out);
    return status;
}

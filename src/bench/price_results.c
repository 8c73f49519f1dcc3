/* Prices of what was measured, and their page: bench/price.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/new_file.h"
#include "base/text.h"
#include "bench/derived.h"
#include "bench/place.h"
#include "bench/price.h"
#include "report/chart.h"
#include "report/style.h"

/* --- rates from results --- */

/* "runs/bench-quick/result.json", "runs/bench-quick/" -> "bench-quick". */
static bool is_called(const stk_bench_kept *kept, const char *name)
{
    size_t n = strlen(kept->path), len = strlen(name);
    const char *file = strrchr(kept->path, '/');
    if (file && !strcmp(file + 1, "result.json")) n = (size_t)(file - kept->path);
    while (n > 0 && kept->path[n - 1] == '/')
        n--;
    return n >= len && !strncmp(kept->path + n - len, name, len) && (n == len || kept->path[n - len - 1] == '/');
}

static const stk_bench_kept *find_result(const stk_bench_kept *kept, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (is_called(&kept[i], name)) return &kept[i];
    return NULL;
}

/* Joules a second of GPUs and processors over a run; NaN: neither is measured. */
static double measured_power(const json_t *from)
{
    double of_gpus = stk_bench_number_at(from, "summary.gpu_joules");
    double of_cpus = stk_bench_number_at(from, "summary.joules");
    double joules = isnan(of_gpus) ? of_cpus : isnan(of_cpus) ? of_gpus : of_gpus + of_cpus;
    return joules / stk_bench_number_at(from, "summary.wall_s");
}

static stk_status fill_rate(const stk_bench_prices *p, stk_bench_priced *m, const json_t *from)
{
    const char *unit = json_string_value(json_object_get(from, "unit"));
    double value = stk_bench_number_at(from, "summary.median.value");
    double low = stk_bench_number_at(from, "summary.median.low"),
           high = stk_bench_number_at(from, "summary.median.high");
    size_t n = strlen(p->unit);
    if (unit && !strcmp(unit, "s") && !strcmp(p->unit, "runs")) {
        m->rate = 1 / value;
        m->rate_low = 1 / high;
        m->rate_high = 1 / low;
    } else if (unit && !strncmp(unit, p->unit, n) && !strcmp(unit + n, "/s")) {
        m->rate = value;
        m->rate_low = low;
        m->rate_high = high;
    } else {
        return stk_fail(STK_MISMATCH, "'%s' is measured in %s in '%s', and the prices are for %s%s", m->case_name,
                        unit ? unit : "no unit", m->result, p->unit,
                        unit && !strcmp(unit, "s") ? "; of whole runs 'work' is '1 runs'" : "");
    }
    if (!(m->rate > 0) || !isfinite(m->rate))
        return stk_fail(STK_CORRUPT, "'%s' of '%s' has no median", m->case_name, m->result);
    return STK_OK;
}

static stk_status refuse_case(const stk_bench_kept *result, const char *name)
{
    enum { MOST = 64 };
    const char *names[MOST + 1] = {NULL};
    for (int i = 0; i < result->n_cases && i < MOST; i++)
        names[i] = result->cases[i].name;
    const char *meant = stk_nearest_name(name, names);
    return stk_fail(STK_NOT_FOUND, "'%s' has no case '%s'%s%s%s", result->path, name, meant ? "; did you mean '" : "",
                    meant ? meant : "", meant ? "'?" : "");
}

static stk_status fill_machine(const stk_bench_prices *p, stk_bench_priced *m, const stk_bench_kept *kept, int n)
{
    const stk_bench_kept *result = find_result(kept, n, m->result);
    const json_t *from, *found = NULL;
    int i_found = 0;
    size_t i;
    if (!result)
        return stk_fail(STK_NOT_FOUND, "'%s' is priced by the result '%s', which is not among those given", m->name,
                        m->result);
    json_array_foreach(json_object_get(result->root, "cases"), i, from)
    {
        const char *name = json_string_value(json_object_get(from, "name"));
        if (!name || strcmp(name, m->case_name) != 0) continue;
        found = from;
        i_found = (int)i;
    }
    if (!found) return refuse_case(result, m->case_name);
    char why[STK_BENCH_SENTENCE];
    if (stk_bench_impossible(result, i_found, why))
        return stk_fail(STK_INVALID, "'%s' of '%s': %s", m->case_name, m->result, why);
    STK_RETURN_IF_ERROR(fill_rate(p, m, found));
    m->is_disturbed = result->is_disturbed;
    if (isnan(m->power_w)) {
        m->power_w = measured_power(found);
        m->power_is_measured = !isnan(m->power_w);
    }
    if (!isnan(m->purchase) && isnan(m->power_w))
        return stk_fail(STK_INVALID, "'%s' is bought, and '%s' did not measure energy: it needs its 'power'", m->name,
                        m->result);
    return STK_OK;
}

stk_status stk_bench_prices_fill(stk_bench_prices *p, const stk_bench_kept *kept, int n)
{
    for (int i = 0; i < p->n; i++)
        if (p->machine[i].result) STK_RETURN_IF_ERROR(fill_machine(p, &p->machine[i], kept, n));
    stk_bench_prices_compute(p);
    return STK_OK;
}

/* --- the page --- */

#define BEGIN                                                                                                          \
    "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport "                                      \
    "content=\"width=device-width\"><title>stoker cost: "

/* A row of a table in Markdown, whose cells hold no '|'. */
static void add_row(stk_text *out, const char *line, size_t n, bool is_head)
{
    char cell[1024];
    stk_text_add(out, "<tr>");
    for (size_t at = 1; at < n;) {
        size_t end = at;
        while (end < n && line[end] != '|')
            end++;
        if (end == n) break;
        snprintf(cell, sizeof(cell), "%.*s", (int)(end - at), line + at);
        bool is_number = strspn(cell, " ") < strlen(cell) && strspn(cell, " 0123456789.,-e+") == strlen(cell);
        stk_text_add(out, is_head ? "<th>" : is_number ? "<td class=n>" : "<td style=\"white-space:normal\">");
        stk_html_add(out, cell);
        stk_text_add(out, is_head ? "</th>" : "</td>");
        at = end + 1;
    }
    stk_text_add(out, "</tr>\n");
}

static void add_tables(stk_text *out, const char *markdown)
{
    bool in_table = false;
    for (const char *line = markdown; *line;) {
        size_t n = strcspn(line, "\n");
        bool is_row = line[0] == '|';
        if (is_row && !in_table) stk_text_add(out, "<table>");
        if (!is_row && in_table) stk_text_add(out, "</table>\n");
        if (is_row && strncmp(line, "|---", 4)) add_row(out, line, n, !in_table);
        if (!is_row && n) {
            char text[1024];
            snprintf(text, sizeof(text), "%.*s", (int)n, line);
            stk_text_add(out, "<p>");
            stk_html_add(out, text);
            stk_text_add(out, "</p>\n");
        }
        in_table = is_row;
        line += n + (line[n] == '\n');
    }
    if (in_table) stk_text_add(out, "</table>\n");
}

/* The machine whose hours the plot counts: the first that is bought, as the table of break-evens counts them. */
static const stk_bench_priced *find_measure(const stk_bench_prices *p)
{
    for (int i = 0; i < p->n; i++)
        if (!isnan(p->machine[i].purchase) && isfinite(p->machine[i].rate)) return &p->machine[i];
    return &p->machine[0];
}

/* Paid for so many hours of a machine's work; bought anew after each lifetime. */
static double paid(const stk_bench_priced *m, double hours)
{
    if (isnan(m->purchase)) return m->hourly * hours;
    return m->purchase * (1 + floor(hours / (m->lifetime_h * m->utilisation))) + m->energy_hour * hours;
}

/* What is paid until so many hours, for the work that one machine does in them. */
static void add_plot(stk_text *out, const stk_bench_prices *p)
{
    enum { POINTS = 200, LINES = 8 };
    static double x[POINTS], y[LINES][POINTS];
    stk_series series[LINES];
    char title[128];
    double most = 0;
    int n = 0;
    const stk_bench_priced *measure = find_measure(p);
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->n; k++) {
            double hours = stk_bench_break_even_h(&p->machine[i], &p->machine[k]) * p->machine[k].rate / measure->rate;
            if (isfinite(hours) && !isnan(p->machine[k].purchase) && !isnan(p->machine[i].hourly))
                most = fmax(most, hours);
        }
    if (!(most > 0)) most = 5000;
    for (int t = 0; t < POINTS; t++)
        x[t] = 2 * most * t / (POINTS - 1);
    for (int i = 0; i < p->n && n < LINES; i++) {
        const stk_bench_priced *m = &p->machine[i];
        if (!isfinite(m->rate) || !isfinite(paid(m, 1))) continue;
        for (int t = 0; t < POINTS; t++)
            y[n][t] = paid(m, x[t] * measure->rate / m->rate);
        series[n] = (stk_series){.x = x, .y = y[n], .n = POINTS, .color = n, .label = m->name};
        n++;
    }
    snprintf(title, sizeof(title), "%s paid, over the hours in which '%.40s' does the same work", p->currency,
             measure->name);
    stk_chart chart = {
        .title = title, .x_label = "hours of its work", .series = series, .n_series = n, .from_zero = true};
    stk_text_add(out, "<h2>Rent or buy</h2><div class=charts>");
    stk_chart_add(out, &chart);
    stk_text_add(out,
                 "</div><p class=dim>Where lines cross the cheaper one changes. Bought machines begin with their "
                 "price, rise by their energy, and are bought anew at the end of their lifetime; rented ones begin "
                 "at 0.</p>\n");
}

stk_status stk_bench_prices_add(const stk_bench_prices *p, stk_text *out)
{
    stk_text tables = {0};
    stk_bench_prices_tell(p, &tables);
    stk_status status = stk_text_status(&tables);
    if (status == STK_OK) {
        add_tables(out, stk_text_get(&tables));
        add_plot(out, p);
    }
    stk_text_free(&tables);
    return status;
}

stk_status stk_bench_prices_page(const stk_bench_prices *p, const char *path)
{
    stk_text out = {0};
    stk_status status = STK_OK;
    if (!stk_bench_is_page(path)) return stk_fail(STK_UNSUPPORTED, "'%s': a page ends in .html", path);
    STK_TRY(stk_new_file_check_kind(path, "a page of 'stoker bench cost'", 0, BEGIN, strlen(BEGIN)));
    stk_text_add(&out,
                 "%sprices</title><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
                 "'unsafe-inline'\"><style>%s</style></head><body><header><h1>What the money buys</h1></header>\n",
                 BEGIN, stk_report_style);
    STK_TRY(stk_bench_prices_add(p, &out));
    stk_text_add(&out, "</body></html>\n");
    STK_TRY(stk_text_status(&out));
    STK_TRY(stk_dir_check_for(path));
    STK_TRY(stk_file_write_durably(path, stk_text_get(&out), out.n));
done:
    stk_text_free(&out);
    return status;
}

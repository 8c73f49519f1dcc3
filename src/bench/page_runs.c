/* Each run of a case, on the page of results: bench/page_parts.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_number.h"
#include "bench/page_parts.h"
#include "bench/tell.h"
#include "report/chart.h"

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_at(const json_t *object, const char *key)
{
    return stk_bench_number_at(object, key);
}

static void add_text(stk_text *out, const char *begin, const char *text, const char *end)
{
    stk_text_add(out, "%s", begin);
    stk_html_add(out, text);
    stk_text_add(out, "%s", end);
}

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
    stk_series series[] = {{.x = x, .y = counted, .n = (int)n, .color = 0, .dots = true, .label = "counts"},
                           {.x = x, .y = others, .n = (int)n, .color = 1, .dots = true, .label = "does not count"}};
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
    stk_text_add(out, "<tr><td class=n>%.0f</td><td class=n>", number_at(run, "number"));
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

/* As it could be typed: within '' where a shell would read it as something else. */
static void add_word(stk_text *out, const char *word)
{
    stk_text quoted = {0};
    if (word[0] && !strpbrk(word, " \t\n|&;<>()$`\\\"'*?[]#~{}!")) {
        stk_html_add(out, word);
        return;
    }
    stk_text_add(&quoted, "'");
    for (const char *p = word; *p; p++)
        stk_text_add(&quoted, "%.*s", *p == '\'' ? 4 : 1, *p == '\'' ? "'\\''" : p);
    stk_text_add(&quoted, "'");
    if (stk_text_status(&quoted) != STK_OK) out->failed = true;
    stk_html_add(out, stk_text_get(&quoted));
    stk_text_free(&quoted);
}

void stk_bench_page_case(stk_text *out, const json_t *from, int i_result, size_t i)
{
    const json_t *words = json_object_get(from, "command"), *word, *runs = json_object_get(from, "runs"), *run;
    size_t k;
    stk_text_add(out, "<section id=r%dc%zu><h3>", i_result, i);
    add_text(out, "", text_at(from, "name"), "</h3><pre>");
    json_array_foreach(words, k, word)
    {
        stk_text_add(out, k ? " " : "");
        add_word(out, json_string_value(word) ? json_string_value(word) : "");
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

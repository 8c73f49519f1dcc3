/* Curves over the batch, on the page of results: bench/page_parts.h. */
#include <math.h>
#include <string.h>

#include "bench/page_parts.h"
#include "report/chart.h"

enum { MOST_POINTS = 64, MOST_PRECISIONS = 6 };

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Of "resnet50 bf16, largest batch" the network. */
static size_t model_length(const json_t *from)
{
    return strcspn(text_at(from, "name"), " ,");
}

static bool is_same_model(const json_t *a, const json_t *b)
{
    size_t n = model_length(a);
    return n == model_length(b) && !strncmp(text_at(a, "name"), text_at(b, "name"), n) &&
           !strcmp(text_at(a, "unit"), text_at(b, "unit"));
}

static double joules_of(const json_t *from)
{
    double joules = stk_bench_number_at(from, "summary.metrics.gpu_joules_per_sample");
    return isnan(joules) ? stk_bench_number_at(from, "summary.metrics.cpu_joules_per_sample") : joules;
}

/* One chart of the cases of a network, a line for each precision, by rising batch. Nothing where no batch differs. */
static void add_chart(stk_text *out, const json_t *cases, const json_t *model, bool of_energy)
{
    double x[MOST_PRECISIONS][MOST_POINTS], y[MOST_PRECISIONS][MOST_POINTS], least = INFINITY, most = 0;
    const char *precision[MOST_PRECISIONS];
    stk_series series[MOST_PRECISIONS];
    int n[MOST_PRECISIONS] = {0}, n_series = 0;
    const json_t *from;
    size_t i;
    json_array_foreach(cases, i, from)
    {
        double batch = stk_bench_number_at(from, "summary.metrics.batch");
        double value = of_energy ? joules_of(from) : stk_bench_number_at(from, "summary.median.value");
        int k = 0;
        if (text_at(from, "scaling")[0] || !is_same_model(model, from) || !(batch > 0) || !isfinite(value)) continue;
        while (k < n_series && strcmp(precision[k], text_at(from, "precision")))
            k++;
        if (k == MOST_PRECISIONS || (k < n_series && n[k] == MOST_POINTS)) continue;
        if (k == n_series) precision[n_series++] = text_at(from, "precision");
        int at = n[k]++;
        for (; at > 0 && x[k][at - 1] > batch; at--) {
            x[k][at] = x[k][at - 1];
            y[k][at] = y[k][at - 1];
        }
        x[k][at] = batch;
        y[k][at] = value;
        least = fmin(least, batch);
        most = fmax(most, batch);
    }
    if (!(most > least)) return;
    for (int k = 0; k < n_series; k++)
        series[k] = (stk_series){.x = x[k], .y = y[k], .n = n[k], .color = k, .dots = true, .label = precision[k]};
    char title[192];
    snprintf(title, sizeof(title), "%.*s: %.40s over the batch", (int)model_length(model) % 100, text_at(model, "name"),
             of_energy ? "joules a sample" : text_at(model, "unit"));
    stk_chart chart = {
        .title = title, .x_label = "samples a step", .series = series, .n_series = n_series, .from_zero = true};
    stk_text_add(out, "<div class=charts>");
    stk_chart_add(out, &chart);
    stk_text_add(out, "</div>\n");
}

void stk_bench_page_curves(stk_text *out, const stk_bench_kept *kept)
{
    const json_t *cases = json_object_get(kept->root, "cases"), *from, *other;
    size_t i, k;
    json_array_foreach(cases, i, from)
    {
        bool is_first = !text_at(from, "scaling")[0];
        json_array_foreach(cases, k, other)
        {
            if (k < i && !text_at(other, "scaling")[0] && is_same_model(other, from)) is_first = false;
        }
        if (!is_first) continue;
        add_chart(out, cases, from, false);
        add_chart(out, cases, from, true);
    }
}

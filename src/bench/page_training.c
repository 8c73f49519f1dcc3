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

static void add_text(stk_text *out, const char *begin, const char *text, const char *end)
{
    stk_text_add(out, "%s", begin);
    stk_html_add(out, text);
    stk_text_add(out, "%s", end);
}

/* --- trainings --- */

/* A cell that leads to its runs. */
typedef struct link {
    int i_result;
    size_t i;
} link;

static void begin_cell(stk_text *out, link to)
{
    stk_text_add(out, "<td class=n>");
    stk_bench_page_link(out, to.i_result, to.i);
}

static void add_number(stk_text *out, link to, double x, const char *unit, const char *missing)
{
    char text[STK_PLAIN_TEXT];
    begin_cell(out, to);
    if (isfinite(x))
        stk_text_add(out, "%s%s</a></td>", stk_plain_number(x, text), unit);
    else
        stk_text_add(out, "<span class=dim>%s</span></a></td>", missing);
}

static void add_share(stk_text *out, double x, const char *of)
{
    if (!isfinite(x))
        stk_text_add(out, "<span class=dim>%s: not known</span>", of);
    else if (x > 1.02)
        stk_text_add(out, "<b>%.0f %%</b> <span class=dim>%s%s</span>", 100 * x, of,
                     !strcmp(of, "published") ? ": cannot be" : ": see below");
    else
        stk_text_add(out, "%.1f %% <span class=dim>%s</span>", 100 * x, of);
}

static void add_bytes(stk_text *out, double x, const char *what)
{
    char text[STK_PLAIN_TEXT];
    if (isfinite(x) && x > 0)
        stk_text_add(out, "%s <span class=dim>%s</span>", stk_plain_bytes(x, text), what);
    else
        stk_text_add(out, "<span class=dim>%s: not told</span>", what);
}

/* On the test data, in the median of the runs. */
static void add_reached(stk_text *out, const double m[STK_BENCH_N_METRICS])
{
    double accuracy = m[STK_BENCH_METRIC_test_accuracy], loss = m[STK_BENCH_METRIC_test_loss];
    char text[STK_PLAIN_TEXT];
    if (isfinite(accuracy))
        stk_text_add(out, "%.2f %%<br><span class=dim>of the test data</span>", 100 * accuracy);
    else if (isfinite(loss))
        stk_text_add(out, "%s<br><span class=dim>loss on the test data</span>", stk_plain_number(loss, text));
    else
        stk_text_add(out, "<span class=dim>not tested</span>");
}

static void add_training(stk_text *out, const json_t *root, const json_t *from, int i_result, size_t i)
{
    double m[STK_BENCH_N_METRICS];
    char text[STK_PLAIN_TEXT];
    stk_bench_use use;
    link to = {i_result, i};
    if (!stk_bench_read_training(root, from, m, &use)) return;
    stk_text_add(out, "<tr><td style=\"white-space:normal\"><a href=\"#r%dc%zu\" style=\"color:inherit\">", i_result,
                 i);
    add_text(out, "", text_at(from, "name"), "</a></td>");
    add_text(out, "<td>", text_at(from, "precision"), "</td>");
    add_number(out, to, m[STK_BENCH_METRIC_batch], "", "-");
    begin_cell(out, to);
    stk_text_add(out, "%s", stk_plain_time(m[STK_BENCH_METRIC_step_s], text));
    stk_text_add(out, "<br><span class=dim>first %s</span>", stk_plain_time(m[STK_BENCH_METRIC_first_step_s], text));
    if (isfinite(m[STK_BENCH_METRIC_epoch_s]))
        stk_text_add(out, "<br><span class=dim>epoch %s</span>", stk_plain_time(m[STK_BENCH_METRIC_epoch_s], text));
    stk_text_add(out, "</a></td>");
    add_number(out, to, use.flop_per_s * 1e-9, "", "-");
    begin_cell(out, to);
    add_share(out, use.of_measured, "measured");
    stk_text_add(out, "<br>");
    add_share(out, use.of_published, "published");
    stk_text_add(out, "</a></td>");
    begin_cell(out, to);
    stk_text_add(out, "%.1f %%</a></td>", 100 * m[STK_BENCH_METRIC_input_share]);
    begin_cell(out, to);
    double used = m[STK_BENCH_METRIC_gpu_bytes];
    add_bytes(out, isfinite(used) ? used : m[STK_BENCH_METRIC_resident_bytes], "in use");
    stk_text_add(out, "<br>");
    add_bytes(out, m[STK_BENCH_METRIC_planned_bytes], "planned");
    stk_text_add(out, "</a></td>");
    double joules = m[STK_BENCH_METRIC_gpu_joules_per_sample];
    if (isnan(joules)) joules = m[STK_BENCH_METRIC_cpu_joules_per_sample];
    add_number(out, to, joules, " J", "not measured");
    begin_cell(out, to);
    add_reached(out, m);
    stk_text_add(out, "</a></td></tr>\n");
}

static bool has_training(const stk_bench_kept *kept)
{
    const json_t *from;
    double m[STK_BENCH_N_METRICS];
    stk_bench_use use;
    size_t i;
    json_array_foreach(json_object_get(kept->root, "cases"), i, from)
    {
        if (stk_bench_read_training(kept->root, from, m, &use)) return true;
    }
    return false;
}

void stk_bench_page_trainings(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    const json_t *from;
    size_t i;
    if (!has_training(kept)) return;
    stk_text_add(out, "<h3>What trainings made of the machine</h3><table><tr><th>Case</th><th>Products in</th><th "
                      "class=n>Batch</th><th class=n>Step</th><th class=n>GFLOP/s</th><th class=n>Share of the "
                      "peak</th><th class=n>Waits for data</th><th class=n>Memory</th><th class=n>Energy a "
                      "sample</th><th class=n>Reached</th></tr>\n");
    json_array_foreach(json_object_get(kept->root, "cases"), i, from)
    {
        add_training(out, kept->root, from, i_result, i);
    }
    stk_text_add(
        out, "</table><p class=dim>GFLOP/s counts what the network itself computes, two for each "
             "multiplication and addition, and nothing that is recomputed. The measured peak is the best "
             "product of matrices or convolution of the same result in the same precision; the published one is the "
             "maker's (MFU), "
             "where the device is in the table of known accelerators. More than 100 %% of the measured peak: that was "
             "disturbed, or convolutions of 3 x 3 that save multiplications count as if they did not. Memory in use is "
             "that of the whole "
             "process, or of the GPU.</p>\n");
}

/* --- roofline: both scales are logarithms --- */

enum { WIDTH = 640, HEIGHT = 320, LEFT = 64, BOTTOM = 40, TOP = 12, RIGHT = 16, MOST_DOTS = 64 };
typedef struct scale {
    double x_low, x_high, y_low, y_high; /* logarithms of base 10 */
} scale;

static double x_of(const scale *s, double intensity)
{
    return LEFT + (log10(intensity) - s->x_low) / (s->x_high - s->x_low) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const scale *s, double flop_per_s)
{
    return HEIGHT - BOTTOM - (log10(flop_per_s) - s->y_low) / (s->y_high - s->y_low) * (HEIGHT - BOTTOM - TOP);
}

typedef struct dots {
    double x[MOST_DOTS], y[MOST_DOTS];
    int color[MOST_DOTS], n;
    const char *name[MOST_DOTS];
} dots;

typedef struct roofs {
    const char *precision[4];
    stk_bench_roof roof[4];
    int n;
} roofs;

/* What can be drawn: a result may say anything. */
static bool is_usual(double x)
{
    return x > 1e-9 && x < 1e24;
}

static void gather(const stk_bench_kept *kept, dots *d, roofs *r)
{
    const json_t *from;
    double m[STK_BENCH_N_METRICS];
    stk_bench_use use;
    size_t i;
    json_array_foreach(json_object_get(kept->root, "cases"), i, from)
    {
        const char *precision = text_at(from, "precision");
        stk_bench_roof roof = stk_bench_measured_roof(kept->root, precision);
        int k = 0;
        if (!stk_bench_read_training(kept->root, from, m, &use) || !(use.flop_per_s > 0) || !(use.intensity > 0))
            continue;
        if (!(roof.flop_per_s > 0) || !(roof.byte_per_s > 0) || d->n == MOST_DOTS) continue;
        if (!is_usual(roof.flop_per_s) || !is_usual(roof.byte_per_s) || !is_usual(use.flop_per_s) ||
            !is_usual(use.intensity))
            continue;
        while (k < r->n && strcmp(r->precision[k], precision))
            k++;
        if (k == 4) continue;
        if (k == r->n) {
            r->precision[r->n] = precision;
            r->roof[r->n++] = roof;
        }
        d->x[d->n] = use.intensity;
        d->y[d->n] = use.flop_per_s;
        d->color[d->n] = k;
        d->name[d->n++] = text_at(from, "name");
    }
}

static scale choose_scale(const dots *d, const roofs *r)
{
    scale s = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int i = 0; i < d->n; i++) {
        s.x_low = fmin(s.x_low, log10(d->x[i]));
        s.x_high = fmax(s.x_high, log10(d->x[i]));
        s.y_low = fmin(s.y_low, log10(d->y[i]));
        s.y_high = fmax(s.y_high, log10(d->y[i]));
    }
    for (int i = 0; i < r->n; i++) {
        double ridge = log10(r->roof[i].flop_per_s / r->roof[i].byte_per_s);
        s.x_low = fmin(s.x_low, ridge);
        s.x_high = fmax(s.x_high, ridge);
        s.y_high = fmax(s.y_high, log10(r->roof[i].flop_per_s));
    }
    return (scale){floor(s.x_low - 0.3), ceil(s.x_high + 0.3), floor(s.y_low - 0.1), ceil(s.y_high + 0.1)};
}

static void add_axes(stk_text *out, const scale *s)
{
    char text[STK_SHORT_TEXT];
    for (double x = s->x_low; x <= s->x_high + 1e-9; x++)
        stk_text_add(out,
                     "<path class=grid d=\"M%.1f %dV%d\" /><text class=tick x=%.1f y=%d text-anchor=middle>%s</text>",
                     x_of(s, pow(10, x)), TOP, HEIGHT - BOTTOM, x_of(s, pow(10, x)), HEIGHT - BOTTOM + 16,
                     stk_short_number(pow(10, x), text));
    for (double y = s->y_low; y <= s->y_high + 1e-9; y++)
        stk_text_add(out, "<path class=grid d=\"M%d %.1fH%d\" /><text class=tick x=%d y=%.1f text-anchor=end>%s</text>",
                     LEFT, y_of(s, pow(10, y)), WIDTH - RIGHT, LEFT - 6, y_of(s, pow(10, y)) + 4,
                     stk_short_number(pow(10, y), text));
    stk_text_add(out, "<text class=tick x=%d y=%d text-anchor=middle>operations for each byte of memory traffic</text>",
                 (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
}

void stk_bench_page_roofline(stk_text *out, const stk_bench_kept *kept)
{
    dots d = {.n = 0};
    roofs r = {.n = 0};
    gather(kept, &d, &r);
    if (!d.n) return;
    scale s = choose_scale(&d, &r);
    stk_text_add(out,
                 "<div class=charts><figure><figcaption>roofline: FLOP/s over operations for each byte; lines are what "
                 "this machine was measured to do at most</figcaption><svg viewBox=\"0 0 %d %d\" role=img "
                 "aria-label=\"roofline\">",
                 WIDTH, HEIGHT);
    add_axes(out, &s);
    for (int i = 0; i < r.n; i++) {
        double low = fmax(pow(10, s.x_low), pow(10, s.y_low) / r.roof[i].byte_per_s);
        double ridge = r.roof[i].flop_per_s / r.roof[i].byte_per_s;
        stk_text_add(out, "<path class=line d=\"M%.1f %.1fL%.1f %.1fH%d\" style=\"stroke:var(--s%d)\" />",
                     x_of(&s, low), y_of(&s, low * r.roof[i].byte_per_s), x_of(&s, ridge),
                     y_of(&s, r.roof[i].flop_per_s), WIDTH - RIGHT, i);
    }
    for (int i = 0; i < d.n; i++) {
        stk_text_add(out, "<circle cx=%.1f cy=%.1f r=4 style=\"fill:var(--s%d)\"><title>", x_of(&s, d.x[i]),
                     y_of(&s, d.y[i]), d.color[i]);
        stk_html_add(out, d.name[i]);
        stk_text_add(out, "</title></circle>");
    }
    stk_text_add(out, "</svg><div class=legend>");
    for (int i = 0; i < r.n; i++) {
        stk_text_add(out, "<span><i style=\"background:var(--s%d)\"></i>", i);
        stk_html_add(out, r.precision[i]);
        stk_text_add(out, "</span>");
    }
    stk_text_add(out, "</div></figure></div>\n");
}

/* --- scaling --- */

static void add_scaled(stk_text *out, const stk_bench_kept *kept, const json_t *from, int i_result, size_t i)
{
    char text[STK_BENCH_FIGURE], why[STK_BENCH_SENTENCE];
    double n = stk_bench_number_at(from, "replicas"), batch = stk_bench_number_at(from, "summary.metrics.batch");
    stk_bench_interval e;
    stk_text_add(out, "<tr><td><a href=\"#r%dc%zu\" style=\"color:inherit\">", i_result, i);
    add_text(out, "", text_at(from, "name"), "</a></td>");
    stk_text_add(out, "<td class=n>%.0f</td>", n);
    add_text(out, "<td>", text_at(from, "precision"), "</td>");
    add_number(out, (link){i_result, i}, batch / n, "", "not told");
    begin_cell(out, (link){i_result, i});
    add_text(out, "",
             stk_bench_figure_text(stk_bench_number_at(from, "summary.median.value"), text_at(from, "unit"), text),
             "</a></td>");
    begin_cell(out, (link){i_result, i});
    if (!stk_bench_scaling_of(kept, (int)i, &e))
        stk_text_add(out, "<span class=dim>1 of itself</span></a></td></tr>\n");
    else if (stk_bench_impossible(kept, (int)i, why))
        add_text(out, "<b>error:</b> <span style=\"white-space:normal\">", why, "</span></a></td></tr>\n");
    else if (isfinite(e.low))
        stk_text_add(out, "%.0f %% (%.0f to %.0f)</a></td></tr>\n", 100 * e.value, 100 * e.low, 100 * e.high);
    else
        stk_text_add(out, "%.0f %%</a></td></tr>\n", 100 * e.value);
}

static void add_scaling_chart(stk_text *out, const json_t *cases)
{
    enum { MOST = 32 };
    static const char *const modes[] = {"strong", "weak"};
    double x[2][MOST], y[2][MOST], ideal[2][MOST], one[2] = {NAN, NAN};
    int n[2] = {0, 0};
    const json_t *from;
    size_t i;
    json_array_foreach(cases, i, from)
    {
        int m = !strcmp(text_at(from, "scaling"), "strong") ? 0 : !strcmp(text_at(from, "scaling"), "weak") ? 1 : -1;
        if (m < 0 || n[m] == MOST) continue;
        double replicas = stk_bench_number_at(from, "replicas"), value = stk_bench_rate_of(from).value;
        if (replicas == 1) one[m] = value;
        x[m][n[m]] = replicas;
        y[m][n[m]++] = value / one[m];
    }
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < n[m]; k++)
            ideal[m][k] = x[m][k];
    stk_series series[3];
    int n_series = 0, most = n[0] >= n[1] ? 0 : 1;
    for (int m = 0; m < 2; m++)
        if (n[m] > 1)
            series[n_series++] =
                (stk_series){.x = x[m], .y = y[m], .n = n[m], .color = m, .dots = true, .label = modes[m]};
    if (!n_series) return;
    series[n_series++] =
        (stk_series){.x = x[most], .y = ideal[most], .n = n[most], .color = 7, .faint = true, .label = "ideal"};
    stk_chart chart = {.title = "how many times as fast as one replica",
                       .x_label = "replicas",
                       .series = series,
                       .n_series = n_series,
                       .from_zero = true};
    stk_text_add(out, "<div class=charts>");
    stk_chart_add(out, &chart);
    stk_text_add(out, "</div>\n");
}

void stk_bench_page_scaling(stk_text *out, const stk_bench_kept *kept, int i_result)
{
    const json_t *cases = json_object_get(kept->root, "cases"), *from;
    stk_bench_interval e;
    size_t i;
    bool has_head = false;
    json_array_foreach(cases, i, from)
    {
        bool is_one = text_at(from, "scaling")[0] && stk_bench_number_at(from, "replicas") == 1;
        if (!is_one && !stk_bench_scaling_of(kept, (int)i, &e)) continue; /* nothing to be compared with */
        if (!has_head)
            stk_text_add(out,
                         "<h3>Scaling</h3><table><tr><th>Case</th><th class=n>Replicas</th><th>Products in</th><th "
                         "class=n>Batch of each</th><th class=n>All together</th><th class=n>Efficiency</th></tr>\n");
        has_head = true;
        add_scaled(out, kept, from, i_result, i);
    }
    if (!has_head) return;
    stk_text_add(out,
                 "</table><p class=dim>Strong: the same batch is shared by more replicas. Weak: each brings its own. "
                 "Efficiency is the rate of N replicas by N times that of one; more than 100 %% is the sign of an "
                 "error.</p>\n");
    add_scaling_chart(out, cases);
}

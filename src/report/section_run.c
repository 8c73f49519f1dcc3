/* What is shown of one run: input, memory, kernels, machine. See report/sections.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/chart.h"
#include "report/sections.h"

/* --- input --- */

static void add_stages(stk_text *out, const json_t *stages)
{
    const json_t *stage;
    double most = 0;
    size_t i;
    char text[STK_SHORT_TEXT];
    json_array_foreach(stages, i, stage) most = fmax(most, stk_json_number(stage, "ns"));
    if (!(most > 0)) return;
    stk_text_add(out, "<table class=bars>");
    json_array_foreach(stages, i, stage)
    {
        double ns = stk_json_number(stage, "ns");
        stk_text_add(out, "<tr><td>");
        stk_html_add(out, stk_json_text(stage, "name"));
        if (stk_json_text(stage, "field")[0]) {
            stk_text_add(out, " <span class=dim>");
            stk_html_add(out, stk_json_text(stage, "field"));
            stk_text_add(out, "</span>");
        }
        stk_text_add(out, "</td><td class=n>%s</td><td class=wide><b style=\"width:%.1f%%\"></b></td></tr>\n",
                     stk_short_time(ns * 1e-9, text), 100 * ns / most);
    }
    stk_text_add(out, "</table>\n");
}

void stk_section_input(stk_text *out, const stk_run_data *run)
{
    const json_t *input = stk_json_find(run->profile, "input"), *ready = stk_json_find(input, "ready");
    double x[64], y[64], sum = 0;
    char a[STK_SHORT_TEXT], b[STK_SHORT_TEXT], c[STK_SHORT_TEXT];
    int n = 0;
    size_t i;
    const json_t *value;
    if (!input) return;
    stk_text_add(out, "<section><h2>Input pipeline, by stage</h2><p>A thread's time for one sample:</p>\n");
    add_stages(out, stk_json_find(input, "stages"));
    json_array_foreach(stk_json_find(input, "stages"), i, value) sum += stk_json_number(value, "ns");
    double active = stk_json_number(input, "active_threads");
    if (sum > 0)
        stk_text_add(
            out,
            "<p>All stages together %s: %s a second from each of %.0f thread%s at work, where %s a second were wanted. "
            "The ring has %.0f batches; %.1f of them were ready on average when one was asked for.</p>\n",
            stk_short_time(sum * 1e-9, a), stk_short_number(1e9 / sum, b), active, active == 1 ? "" : "s",
            stk_short_number(stk_json_number(run->profile, "step.samples_per_s"), c), stk_json_number(input, "slots"),
            stk_json_number(input, "ready_mean"));
    json_array_foreach(ready, i, value)
    {
        if (n == 64) break;
        x[n] = 100 * ((double)i + 0.5) / (double)json_array_size(ready);
        y[n++] = json_number_value(value);
    }
    stk_series series = {x, y, n, 0, false, false, NULL};
    stk_text_add(out, "<div class=charts>");
    if (n > 1)
        stk_chart_add(out,
                      &(stk_chart){"batches ready when one was asked for", "% of the run", &series, 1, true, false});
    stk_text_add(out, "</div></section>\n");
}

/* --- memory --- */

enum { ARENA_WIDTH = 1120, ARENA_HEIGHT = 320 };

static int color_of(const char *what)
{
    return !strcmp(what, "activation") ? 0 : !strcmp(what, "backward") ? 1 : !strcmp(what, "gradient") ? 2 : 3;
}

static double at(const json_t *buffer, size_t i)
{
    return json_number_value(json_array_get(buffer, i));
}

/* Addresses that some buffer has at some time; those of a small program keep apart, and what is between would be most
 * of the picture. */
typedef struct range {
    double begin, end, before; /* before: bytes of all ranges below it */
} range;

static int by_begin(const void *a, const void *b)
{
    double x = ((const range *)a)->begin, y = ((const range *)b)->begin;
    return (x > y) - (x < y);
}

/* Fills ranges[n_buffers], and returns how many there are. */
static size_t find_ranges(const json_t *buffers, range *ranges)
{
    const json_t *buffer;
    size_t i, n = 0, n_all = json_array_size(buffers);
    json_array_foreach(buffers, i, buffer) ranges[i] = (range){at(buffer, 0), at(buffer, 0) + at(buffer, 1), 0};
    qsort(ranges, n_all, sizeof(*ranges), by_begin);
    for (i = 0; i < n_all; i++)
        if (n > 0 && ranges[i].begin <= ranges[n - 1].end)
            ranges[n - 1].end = fmax(ranges[n - 1].end, ranges[i].end);
        else
            ranges[n++] = ranges[i];
    for (i = 1; i < n; i++)
        ranges[i].before = ranges[i - 1].before + ranges[i - 1].end - ranges[i - 1].begin;
    return n;
}

static double place_of(const range *ranges, size_t n, double address)
{
    size_t i = 0;
    while (i + 1 < n && ranges[i + 1].begin <= address)
        i++;
    return ranges[i].before + address - ranges[i].begin;
}

static void draw_arena(stk_text *out, const json_t *memory)
{
    const json_t *buffers = stk_json_find(memory, "buffers"), *buffer;
    double n_nodes = stk_json_number(memory, "n_nodes");
    size_t i, n_all = json_array_size(buffers);
    char text[STK_SHORT_TEXT];
    range *ranges = n_all > 0 && n_nodes > 0 ? malloc(n_all * sizeof(*ranges)) : NULL;
    if (!ranges) return;
    size_t n = find_ranges(buffers, ranges);
    double arena = ranges[n - 1].before + ranges[n - 1].end - ranges[n - 1].begin;
    if (!(arena > 0)) {
        free(ranges);
        return;
    }
    stk_text_add(
        out,
        "<figure><figcaption>The arena over a step: kernels to the right, addresses upwards, without those that no "
        "buffer has; each box is a buffer from where it is made to where it is last read</figcaption><svg class=arena "
        "viewBox=\"0 0 %d %d\" role=img "
        "aria-label=\"arena over time\"><rect class=back width=%d height=%d />\n",
        ARENA_WIDTH, ARENA_HEIGHT, ARENA_WIDTH, ARENA_HEIGHT);
    json_array_foreach(buffers, i, buffer)
    {
        double x0 = at(buffer, 2) / n_nodes * ARENA_WIDTH, x1 = (at(buffer, 3) + 1) / n_nodes * ARENA_WIDTH;
        double y0 = place_of(ranges, n, at(buffer, 0)) / arena * ARENA_HEIGHT, h = at(buffer, 1) / arena * ARENA_HEIGHT;
        const char *what = json_string_value(json_array_get(buffer, 4));
        const char *layer = json_string_value(json_array_get(buffer, 5));
        if (h < 0.3 || !what) continue;
        if (x1 > ARENA_WIDTH) x1 = ARENA_WIDTH;
        stk_text_add(out, "<rect x=%.1f y=%.1f width=%.1f height=%.1f style=\"fill:var(--s%d)\"><title>%s, ", x0,
                     ARENA_HEIGHT - y0 - h, fmax(x1 - x0, 0.8), h, color_of(what),
                     stk_short_bytes(at(buffer, 1), text));
        stk_html_add(out, what);
        stk_text_add(out, " ");
        stk_html_add(out, layer ? layer : "");
        stk_text_add(out, "</title></rect>\n");
    }
    free(ranges);
    stk_text_add(out, "</svg><div class=legend>");
    static const char *const names[] = {"activations", "backward", "gradients of parameters", "workspace of kernels"};
    for (int k = 0; k < 4; k++)
        stk_text_add(out, "<span><i style=\"background:var(--s%d)\"></i>%s</span>", k, names[k]);
    stk_text_add(out, "</div></figure>\n");
}

void stk_section_memory(stk_text *out, const stk_run_data *run)
{
    const json_t *memory = stk_json_find(run->profile, "memory");
    static const char *const rows[][3] = {
        {"arena, planned", "arena_bytes", "all activations, gradients and workspaces of a step"},
        {"gaps", "spread_bytes", "besides, between the buffers of a small program: threads keep apart"},
        {"arena, used", "used_bytes", "the highest byte that a kernel was given"},
        {"alive at once", "lower_bound_bytes", "at the moment of most: no packing needs less"},
        {"variables", "variable_bytes", "parameters, statistics, optimiser state"},
        {"packed weights", "packed_bytes", "in 16 bits, in the order that kernels want"},
        {"limit", "limit_bytes", "the recipe's memory"},
        {"process, at most", "peak_resident_bytes", "resident, data pipeline and libraries included"},
    };
    char text[STK_SHORT_TEXT];
    if (!memory) return;
    stk_text_add(out, "<section><h2>Memory: plan and use</h2>\n");
    draw_arena(out, memory);
    stk_text_add(out, "<table>");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double bytes = stk_json_number(memory, rows[i][1]);
        if (!isfinite(bytes)) continue; /* older runs lack some */
        stk_text_add(out, "<tr><td>%s</td><td class=n>%s</td><td class=dim>%s</td></tr>\n", rows[i][0],
                     stk_short_bytes(bytes, text), rows[i][2]);
    }
    stk_text_add(out, "</table></section>\n");
}

/* --- kernels --- */

enum { ROOF_WIDTH = 1120, ROOF_HEIGHT = 330, ROOF_LEFT = 92, ROOF_BOTTOM = 40, ROOF_TOP = 12, ROOF_RIGHT = 22 };

typedef struct roof {
    double x0, x1, y0, y1; /* log10 of FLOP/byte and FLOP/s */
} roof;

static double roof_x(const roof *r, double intensity)
{
    return ROOF_LEFT + (log10(intensity) - r->x0) / (r->x1 - r->x0) * (ROOF_WIDTH - ROOF_LEFT - ROOF_RIGHT);
}

static double roof_y(const roof *r, double rate)
{
    return ROOF_HEIGHT - ROOF_BOTTOM - (log10(rate) - r->y0) / (r->y1 - r->y0) * (ROOF_HEIGHT - ROOF_BOTTOM - ROOF_TOP);
}

static void add_roof_axes(stk_text *out, const roof *r)
{
    char text[STK_SHORT_TEXT];
    for (double y = ceil(r->y0); y <= r->y1; y++)
        stk_text_add(out,
                     "<line class=grid x1=%d x2=%d y1=%.1f y2=%.1f /><text class=tick text-anchor=end x=%d "
                     "y=%.1f>%sFLOP/s</text>",
                     ROOF_LEFT, ROOF_WIDTH - ROOF_RIGHT, roof_y(r, pow(10, y)), roof_y(r, pow(10, y)), ROOF_LEFT - 5,
                     roof_y(r, pow(10, y)) + 4, stk_short_number(pow(10, y), text));
    for (double x = ceil(r->x0); x <= r->x1; x++)
        stk_text_add(out, "<text class=tick text-anchor=middle x=%.1f y=%d>%.*f</text>", roof_x(r, pow(10, x)),
                     ROOF_HEIGHT - ROOF_BOTTOM + 16, x < 0 ? (int)-x : 0, pow(10, x));
    stk_text_add(out, "<text class=tick text-anchor=end x=%d y=%d>FLOP for each byte moved</text>",
                 ROOF_WIDTH - ROOF_RIGHT, ROOF_HEIGHT - 4);
}

/* Whole powers of ten around the peak and all kernels. */
static roof find_roof(const json_t *kernels, double peak)
{
    const json_t *k;
    size_t i;
    roof r = {-2, 3, floor(log10(peak)) - 1, ceil(log10(peak) + 0.1)};
    json_array_foreach(kernels, i, k)
    {
        double s = stk_json_number(k, "s"), flops = stk_json_number(k, "flops"), bytes = stk_json_number(k, "bytes");
        if (!(s > 0) || !(flops > 0) || !(bytes > 0)) continue;
        r.x0 = fmin(r.x0, floor(log10(flops / bytes)));
        r.x1 = fmax(r.x1, ceil(log10(flops / bytes)));
        r.y0 = fmin(r.y0, floor(log10(flops / s)));
        r.y1 = fmax(r.y1, ceil(log10(flops / s)));
    }
    return r;
}

/* Kernels as dots whose area is their time, below the roof that memory and multiplication make. */
static void draw_roofline(stk_text *out, const json_t *kernels, double peak, double stream, double sum)
{
    const json_t *k;
    size_t i;
    if (!(peak > 0) || !(stream > 0)) return;
    roof r = find_roof(kernels, peak);
    double left = fmax(pow(10, r.x0), pow(10, r.y0) / stream); /* where the slope comes into the picture */
    stk_text_add(out,
                 "<figure><figcaption>Roofline: each dot is a kernel, as large as its time; above the roof are those "
                 "that save multiplications or find their data in caches</figcaption><svg "
                 "viewBox=\"0 0 %d %d\" "
                 "role=img aria-label=roofline>",
                 ROOF_WIDTH, ROOF_HEIGHT);
    add_roof_axes(out, &r);
    stk_text_add(out, "<path class=line style=\"stroke:var(--ink2)\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>",
                 roof_x(&r, left), roof_y(&r, left * stream), roof_x(&r, peak / stream), roof_y(&r, peak),
                 roof_x(&r, pow(10, r.x1)), roof_y(&r, peak));
    json_array_foreach(kernels, i, k)
    {
        double s = stk_json_number(k, "s"), flops = stk_json_number(k, "flops"), bytes = stk_json_number(k, "bytes");
        if (!(s > 0) || !(flops > 0) || !(bytes > 0)) continue;
        stk_text_add(out, "<circle class=kernel cx=%.1f cy=%.1f r=%.1f style=\"fill:var(--s%d)\"><title>",
                     roof_x(&r, flops / bytes), roof_y(&r, flops / s), 3 + 26 * sqrt(s / sum), i == 0 ? 1 : 0);
        stk_html_add(out, stk_json_text(k, "op"));
        stk_text_add(out, " ");
        stk_html_add(out, stk_json_text(k, "layer"));
        stk_text_add(out, ", %.1f %%</title></circle>", 100 * s / sum);
    }
    stk_text_add(out, "</svg></figure>\n");
}

void stk_section_kernels(stk_text *out, const stk_run_data *run)
{
    const json_t *kernels = stk_json_find(run->profile, "kernels"), *work = stk_json_find(run->profile, "work"), *k;
    double peak = stk_json_number(run->profile, "peaks.flops_per_s"),
           stream = stk_json_number(run->profile, "peaks.bytes_per_s"), sum = 0;
    size_t i;
    json_array_foreach(work, i, k) sum += stk_json_number(k, "s");
    if (!(sum > 0)) return;
    stk_text_add(out, "<section><h2>Kernels against the roofline</h2>\n");
    draw_roofline(out, kernels, peak, stream, sum);
    if (!(peak > 0))
        stk_text_add(
            out,
            "<p class=dim>What this machine can do was not measured, since the run took less than 20 seconds; with "
            "<code>--trace</code> it is in any case.</p>\n");
    stk_text_add(
        out, "<table><tr><th>kernel</th><th>layer</th><th>output</th><th>code</th><th class=n>share</th><th class=n>a "
             "step</th><th class=n>FLOP/s</th><th class=n>bytes/s</th><th class=n>of its roof</th></tr>\n");
    json_array_foreach(kernels, i, k)
    {
        char a[STK_SHORT_TEXT], b[STK_SHORT_TEXT], c[STK_SHORT_TEXT];
        double s = stk_json_number(k, "s"), flops = stk_json_number(k, "flops"), bytes = stk_json_number(k, "bytes");
        if (i == 20 || !(s > 0)) break;
        double roof_s = fmax(flops / peak, bytes / stream);
        stk_text_add(out, "<tr><td>");
        stk_html_add(out, stk_json_text(k, "op"));
        stk_text_add(out, "</td><td>");
        stk_html_add(out, stk_json_text(k, "layer"));
        stk_text_add(out, "</td><td class=dim>");
        stk_html_add(out, stk_json_text(k, "shape"));
        stk_text_add(out, "</td><td class=dim>");
        stk_html_add(out, stk_json_text(k, "impl"));
        stk_text_add(out, "</td><td class=n>%.1f %%</td><td class=n>%s</td><td class=n>%s</td><td class=n>%s</td>",
                     100 * s / sum, stk_short_time(s, a), stk_short_number(flops / s, b),
                     stk_short_bytes(bytes / s, c));
        if (isfinite(roof_s))
            stk_text_add(out, "<td class=n>%.0f %%</td></tr>\n", 100 * roof_s / s);
        else
            stk_text_add(out, "<td class=n>–</td></tr>\n");
    }
    stk_text_add(out, "</table></section>\n");
}

/* --- machine --- */

static void add_row(stk_text *out, const char *name, const char *value)
{
    if (!value[0]) return;
    stk_text_add(out, "<tr><td>%s</td><td>", name);
    stk_html_add(out, value);
    stk_text_add(out, "</td></tr>\n");
}

void stk_section_machine(stk_text *out, const stk_run_data *run)
{
    const json_t *m = stk_json_find(run->profile, "machine");
    char text[160], a[STK_SHORT_TEXT], b[STK_SHORT_TEXT];
    stk_text_add(out, "<section><h2>Machine, versions, recipe</h2><table>\n");
    add_row(out, "processor", stk_json_text(m, "processor"));
    if (m) {
        snprintf(text, sizeof(text), "%s, %s of memory", stk_short_number(stk_json_number(m, "cores"), b),
                 stk_short_bytes(stk_json_number(m, "memory_bytes"), a));
        add_row(out, "cores", text);
        snprintf(text, sizeof(text), "%.30s (%.100s)", stk_json_text(m, "device"), stk_json_text(m, "about"));
        add_row(out, "device", text);
        snprintf(text, sizeof(text), "%.40s %.80s", stk_json_text(m, "system"), stk_json_text(m, "kernel"));
        add_row(out, "system", text);
        add_row(out, "stoker", stk_json_text(m, "stoker"));
    }
    double peak = stk_json_number(run->profile, "peaks.flops_per_s");
    if (peak > 0) {
        snprintf(text, sizeof(text), "%sFLOP/s in f32 matrix products, %s/s of memory traffic",
                 stk_short_number(peak, a), stk_short_bytes(stk_json_number(run->profile, "peaks.bytes_per_s"), b));
        add_row(out, "measured peaks", text);
    }
    add_row(out, "energy", stk_json_text(run->profile, "energy.missing"));
    stk_text_add(out, "</table><details><summary>the recipe in full</summary><pre>");
    stk_html_add(out, run->recipe);
    stk_text_add(out, "</pre></details></section>\n");
}

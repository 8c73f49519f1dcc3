/* The report as one page: verdicts, and curves as SVG. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/plain_number.h"
#include "base/printable.h"
#include "watch/report.h"

enum { WIDTH = 860, HEIGHT = 130, LEFT = 52, RIGHT = 14, TOP = 8, BOTTOM = 20, MOST_POINTS = 430 };
static const char unit_share[] = " %";

static void add_escaped(stk_text *out, const char *text)
{
    stk_text shown = {0};
    stk_text_add_printable(&shown, text);
    for (const char *c = stk_text_get(&shown); *c; c++) {
        switch (*c) {
        case '<': stk_text_add(out, "&lt;"); break;
        case '>': stk_text_add(out, "&gt;"); break;
        case '&': stk_text_add(out, "&amp;"); break;
        case '"': stk_text_add(out, "&quot;"); break;
        default: stk_text_add_bytes(out, c, 1);
        }
    }
    out->failed = out->failed || shown.failed;
    stk_text_free(&shown);
}

static double value_at(const stk_watch_history *h, size_t first, size_t last, size_t offset)
{
    double sum = 0, n = 0;
    for (size_t i = first; i < last; i++) {
        double x = *(const double *)((const char *)&h->row[i] + offset);
        if (!isfinite(x)) continue;
        sum += x;
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

typedef struct frame {
    double end_s, most; /* at the right, and at the top */
} frame;

static double to_x(const frame *f, double at_s)
{
    return LEFT + at_s / f->end_s * (WIDTH - LEFT - RIGHT);
}

static double to_y(const frame *f, double value)
{
    return HEIGHT - BOTTOM - fmin(1, value / f->most) * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, at or above x. */
static double round_up(double x)
{
    double power = pow(10, floor(log10(x))), lead = x / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

/* Three lines across with their values, seconds below, and a ground behind the part that was judged. */
static void add_axes(const stk_watch_signals *judged, const frame *f, const char *unit, stk_text *out)
{
    double scale = unit == unit_share ? 100 : 1, step_s = round_up(f->end_s / 8);
    if (judged->end_s > judged->begin_s)
        stk_text_add(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", to_x(f, judged->begin_s), TOP,
                     to_x(f, judged->end_s) - to_x(f, judged->begin_s), HEIGHT - TOP - BOTTOM);
    for (int i = 0; i <= 2; i++) {
        double y = to_y(f, f->most * i / 2);
        stk_text_add(out, "<path d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g%s</text>", LEFT,
                     y, WIDTH - RIGHT, LEFT - 5, y + 4, scale * f->most * i / 2, unit == unit_share ? unit : "");
    }
    for (double s = 0; s <= f->end_s; s += step_s)
        stk_text_add(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g s</text>", to_x(f, s), HEIGHT - 4, s);
}

/* One curve from 0 to above its largest value, or to 1 for shares. */
static void add_chart(const stk_watch_report *report, const char *title, size_t offset, const char *unit, stk_text *out)
{
    const stk_watch_history *h = report->history;
    frame f = {h->n ? h->row[h->n - 1].at_s : 0, 0};
    size_t step = h->n / MOST_POINTS + 1;
    for (size_t i = 0; i < h->n; i += step)
        f.most = fmax(f.most, value_at(h, i, i + step < h->n ? i + step : h->n, offset));
    if (!(f.most > 0) || !(f.end_s > 0)) return;
    f.most = unit == unit_share ? 1 : round_up(f.most);
    stk_text_add(
        out, "<figure><figcaption>%s%s%s</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", title,
        unit[0] && unit != unit_share ? ", " : "", unit == unit_share ? "" : unit, WIDTH, HEIGHT, title);
    add_axes(&report->signals, &f, unit, out);
    stk_text_add(out, "<polyline points=\"");
    for (size_t i = 0; i < h->n; i += step) {
        double x = value_at(h, i, i + step < h->n ? i + step : h->n, offset);
        if (isfinite(x)) stk_text_add(out, "%.1f,%.1f ", to_x(&f, h->row[i].at_s), to_y(&f, x));
    }
    stk_text_add(out, "\"/></svg></figure>\n");
}

static void add_verdict(const stk_watch_report *report, int i_verdict, stk_text *out)
{
    int order[STK_WATCH_REMEDIES];
    char cost[120];
    const stk_watch_verdict *verdict = &report->verdict[i_verdict];
    int n = stk_watch_remedies(report->verdict, i_verdict, report->facts, order);
    stk_text_add(out, "<section class=\"%s\"><h2>", verdict->rule->is_healthy ? "well" : "ill");
    add_escaped(out, verdict->rule->title);
    stk_text_add(out, "</h2><p>%s, confidence %s (%.2f)", verdict->rule->name,
                 stk_watch_confidence_word(verdict->confidence), verdict->confidence);
    if (stk_watch_report_cost(verdict, cost, sizeof(cost))) stk_text_add(out, "; cost: %s", cost);
    stk_text_add(out, "</p><ul>");
    for (int i = 0; i < verdict->n_evidence; i++) {
        stk_text_add(out, "<li>");
        add_escaped(out, verdict->evidence[i]);
        stk_text_add(out, "</li>");
    }
    stk_text_add(out, "</ul><ol>");
    for (int i = 0; i < n; i++) {
        const stk_watch_remedy *remedy = &verdict->rule->remedy[order[i]];
        double gain = stk_watch_gain(verdict, remedy);
        stk_text_add(out, "<li>");
        add_escaped(out, remedy->text);
        if (gain >= 1.05)
            stk_text_add(out, " <b>up to %.1fx</b>", gain);
        else if (remedy->wins > 0)
            stk_text_add(out, " <small>less than 5 %%</small>");
        stk_text_add(out, "</li>");
    }
    stk_text_add(out, "</ol></section>\n");
}

static const char style[] =
    ":root{--ink:#222;--dim:#6b6b6b;--paper:#fff;--card:#faf7f5;--grid:#ddd;--judged:#eef3f8;--line:#1f4e8c}"
    "@media "
    "(prefers-color-scheme:dark){:root{--ink:#e8e6e3;--dim:#a09e9a;--paper:#1a1a19;--card:#262523;--grid:#3c3b38;"
    "--judged:#22303f;--line:#7fb2ff}}"
    "body{font:15px/1.5 sans-serif;max-width:900px;margin:2em auto;padding:0 "
    "1em;color:var(--ink);background:var(--paper)}"
    "h1{font-size:1.3em}h2{font-size:1.1em;margin:.2em 0}section{border-left:5px solid #c33;padding:.2em "
    "1em;margin:1em 0;"
    "background:var(--card)}section.well{border-color:#393}figure{margin:1em 0}svg{width:100%;display:block}"
    "svg text{font-size:11px;fill:var(--dim)}svg path{stroke:var(--grid)}svg rect{fill:var(--judged)}"
    "polyline{fill:none;stroke:var(--line);stroke-width:1.4}small,.dim{color:var(--dim)}"
    "@media (max-width:520px){svg text{font-size:19px}}";

static void add_head(const stk_watch_report *report, stk_text *out)
{
    const char *command = stk_watch_facts_get(report->facts, "command", 0);
    const char *framework = stk_watch_facts_get(report->facts, "framework", 0);
    double joules = report->history->gpu_joules;
    char kj[STK_PLAIN_TEXT], end[120];
    stk_text_add(out,
                 STK_WATCH_PAGE "</title><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                                "style-src 'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width\">"
                                "<style>%s</style></head><body>\n<h1>",
                 style);
    add_escaped(out, command ? command : "a running process");
    stk_text_add(out, "</h1><p>%.1f s watched, judged from %.1f to %.1f s (tinted in the curves)", report->length_s,
                 report->signals.begin_s, report->signals.end_s);
    if (framework) {
        stk_text_add(out, "; ");
        add_escaped(out, framework);
    }
    if (stk_watch_report_end(report->facts, end, sizeof(end))) stk_text_add(out, "; it ended with %s", end);
    if (joules > 0) stk_text_add(out, "; the GPUs took %s kJ", stk_plain_number(joules / 1000, kj));
    stk_text_add(out, "</p>\n");
}

void stk_watch_report_html(const stk_watch_report *report, stk_text *out)
{
    static const struct {
        const char *title, *unit;
        size_t offset;
    } curves[] = {{"GPU busy", unit_share, offsetof(stk_watch_row, gpu_busy)},
                  {"GPU power, share of its limit", unit_share, offsetof(stk_watch_row, power)},
                  {"SMs active", unit_share, offsetof(stk_watch_row, sm)},
                  {"cores in use", "", offsetof(stk_watch_row, cores)},
                  {"busiest thread", unit_share, offsetof(stk_watch_row, top)},
                  {"ready threads that wait for a core", unit_share, offsetof(stk_watch_row, waited)},
                  {"read", "MB/s", offsetof(stk_watch_row, asked_mbs)},
                  {"written", "MB/s", offsetof(stk_watch_row, put_mbs)}};
    const char *text;
    add_head(report, out);
    if (report->n_verdicts == 0) stk_text_add(out, "<section><h2>no rule holds</h2></section>\n");
    for (int i = 0; i < report->n_verdicts; i++)
        add_verdict(report, i, out);
    for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++)
        add_chart(report, curves[i].title, curves[i].offset, curves[i].unit, out);
    stk_text_add(out, "<h2>Not seen</h2><ul>");
    for (size_t i = 0; (text = stk_watch_facts_get(report->facts, "missing", i)); i++) {
        stk_text_add(out, "<li>");
        add_escaped(out, text);
        stk_text_add(out, "</li>");
    }
    stk_text_add(out, "</ul>");
    if (report->overhead >= 0 && report->length_s > 0.5)
        stk_text_add(out, "<p class=\"dim\">Watching took %.2f %% of one core.</p>", 100 * report->overhead);
    stk_text_add(out, "</body></html>\n");
}

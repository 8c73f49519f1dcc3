#include "watch/page.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/plain_number.h"
#include "base/printable.h"

enum { WIDTH = 860, HEIGHT = 130, LEFT = 52, RIGHT = 14, TOP = 8, BOTTOM = 20, MOST_POINTS = 430 };
static const char unit_share[] = " %";

void stk_watch_page_text(stk_text *out, const char *text)
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

/* Of the rows from first to last, the mean by their lengths. */
static double value_at(const stk_watch_history *h, size_t first, size_t last, size_t offset)
{
    double sum = 0, length_s = 0;
    for (size_t i = first; i < last; i++) {
        double x = *(const double *)((const char *)&h->row[i] + offset);
        if (!isfinite(x)) continue;
        sum += x * h->row[i].length_s;
        length_s += h->row[i].length_s;
    }
    return length_s > 0 ? sum / length_s : NAN;
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
    char shown[STK_PLAIN_TEXT];
    if (judged->end_s > judged->begin_s)
        stk_text_add(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", to_x(f, judged->begin_s), TOP,
                     to_x(f, judged->end_s) - to_x(f, judged->begin_s), HEIGHT - TOP - BOTTOM);
    for (int i = 0; i <= 2; i++) {
        double y = to_y(f, f->most * i / 2);
        stk_text_add(out, "<path d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s%s</text>", LEFT, y,
                     WIDTH - RIGHT, LEFT - 5, y + 4, stk_plain_number(scale * f->most * i / 2, shown),
                     unit == unit_share ? unit : "");
    }
    for (double s = 0; s <= f->end_s; s += step_s)
        stk_text_add(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g s</text>", to_x(f, s), HEIGHT - 4, s);
}

typedef struct quantity {
    const char *title, *unit;
    size_t offset;
} quantity;

/* Behind the rows of the point that begins with row i: as many as a point has room for, and more where a sample that
 * came late was followed at once by the next, which says little of so short a time. */
static size_t end_of_point(const stk_watch_history *h, size_t i)
{
    size_t end = i + h->n / MOST_POINTS + 1;
    double length_s = 0, least_s = h->row[h->n - 1].at_s / (double)h->n / 2;
    for (size_t k = i; k < end && k < h->n; k++)
        length_s += h->row[k].length_s;
    while (end < h->n && (length_s < least_s || h->row[end].length_s < least_s))
        length_s += h->row[end++].length_s;
    return end < h->n ? end : h->n;
}

/* The frame that all curves fit into: from 0 to above the largest value, or to 1 for shares. False: none is known. */
static bool find_frame(const stk_watch_report *const *report, const double *later_s, int n, const quantity *q, frame *f)
{
    *f = (frame){0, 0};
    for (int k = 0; k < n; k++) {
        const stk_watch_history *h = report[k]->history;
        if (h->n) f->end_s = fmax(f->end_s, h->row[h->n - 1].at_s + (later_s ? later_s[k] : 0));
        for (size_t i = 0, end; i < h->n; i = end) {
            end = end_of_point(h, i);
            f->most = fmax(f->most, value_at(h, i, end, q->offset));
        }
    }
    if (!(f->most > 0) || !(f->end_s > 0)) return false;
    f->most = q->unit == unit_share ? 1 : round_up(f->most);
    return true;
}

static void add_curve(const stk_watch_history *h, double later_s, const frame *f, size_t offset, stk_text *out)
{
    for (size_t i = 0, end; i < h->n; i = end) {
        end = end_of_point(h, i);
        double x = value_at(h, i, end, offset);
        if (isfinite(x)) stk_text_add(out, "%.1f,%.1f ", to_x(f, h->row[i].at_s + later_s), to_y(f, x));
    }
}

static void add_chart(const stk_watch_report *const *report, const double *later_s, int n, const quantity *q,
                      stk_text *out)
{
    static const stk_watch_signals none;
    frame f;
    if (!find_frame(report, later_s, n, q, &f)) return;
    stk_text_add(out,
                 "<figure><figcaption>%s%s%s</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">",
                 q->title, q->unit[0] && q->unit != unit_share ? ", " : "", q->unit == unit_share ? "" : q->unit, WIDTH,
                 HEIGHT, q->title);
    add_axes(n == 1 ? &report[0]->signals : &none, &f, q->unit, out);
    for (int k = 0; k < n; k++) {
        if (n > 1)
            stk_text_add(out, "<polyline class=\"c%d\" points=\"", k % STK_WATCH_PAGE_COLOURS);
        else
            stk_text_add(out, "<polyline points=\"");
        add_curve(report[k]->history, later_s ? later_s[k] : 0, &f, q->offset, out);
        stk_text_add(out, "\"/>");
    }
    stk_text_add(out, "</svg></figure>\n");
}

void stk_watch_page_curves(const stk_watch_report *const *report, const double *later_s, int n, stk_text *out)
{
    static const quantity all[] = {{"GPU busy", unit_share, offsetof(stk_watch_row, gpu_busy)},
                                   {"GPU power, share of its limit", unit_share, offsetof(stk_watch_row, power)},
                                   {"SMs active", unit_share, offsetof(stk_watch_row, sm)},
                                   {"cores in use", "", offsetof(stk_watch_row, cores)},
                                   {"busiest thread", unit_share, offsetof(stk_watch_row, top)},
                                   {"ready threads that wait for a core", unit_share, offsetof(stk_watch_row, waited)},
                                   {"read", "MB/s", offsetof(stk_watch_row, asked_mbs)},
                                   {"written", "MB/s", offsetof(stk_watch_row, put_mbs)}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        add_chart(report, later_s, n, &all[i], out);
}

void stk_watch_page_verdict(const stk_watch_report *report, int i_verdict, stk_text *out)
{
    int order[STK_WATCH_REMEDIES];
    char cost[120];
    const stk_watch_verdict *verdict = &report->verdict[i_verdict];
    int n = stk_watch_remedies(report->verdict, i_verdict, report->facts, order);
    stk_text_add(out, "<section class=\"%s\"><h2>", verdict->rule->is_healthy ? "well" : "ill");
    stk_watch_page_text(out, verdict->rule->title);
    stk_text_add(out, "</h2><p>%s, confidence %s (%.2f)", verdict->rule->name,
                 stk_watch_confidence_word(verdict->confidence), verdict->confidence);
    if (stk_watch_report_cost(verdict, cost, sizeof(cost))) stk_text_add(out, "; cost: %s", cost);
    stk_text_add(out, "</p><ul>");
    for (int i = 0; i < verdict->n_evidence; i++) {
        stk_text_add(out, "<li>");
        stk_watch_page_text(out, verdict->evidence[i]);
        stk_text_add(out, "</li>");
    }
    stk_text_add(out, "</ul><ol>");
    for (int i = 0; i < n; i++) {
        const stk_watch_remedy *remedy = &verdict->rule->remedy[order[i]];
        double gain = stk_watch_gain(verdict, remedy);
        stk_text_add(out, "<li>");
        stk_watch_page_text(out, remedy->text);
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
    "body{font:15px/1.5 sans-serif;max-width:900px;margin:2em auto;overflow-wrap:anywhere;padding:0 "
    "1em;color:var(--ink);background:var(--paper)}"
    "h1{font-size:1.3em}h2{font-size:1.1em;margin:.2em 0}section{border-left:5px solid #c33;padding:.2em "
    "1em;margin:1em 0;"
    "background:var(--card)}section.well{border-color:#393}figure{margin:1em 0}svg{width:100%;display:block}"
    "svg text{font-size:11px;fill:var(--dim)}svg path{stroke:var(--grid)}svg rect{fill:var(--judged)}"
    "polyline{fill:none;stroke:var(--line);stroke-width:1.4}small,.dim{color:var(--dim)}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2em .6em .2em 0;border-bottom:1px solid "
    "var(--grid);overflow-wrap:anywhere}th{overflow-wrap:break-word}tr.odd td{font-weight:bold}"
    ".c0{stroke:#1f77b4}.c1{stroke:#d9541e}.c2{stroke:#2a9d4a}.c3{stroke:#c43a6b}.c4{stroke:#8a6bd1}.c5{stroke:#8c6239}"
    ".c6{stroke:#0a9aa8}.c7{stroke:#8f8f2a}td svg{width:2em;height:.6em;display:inline}"
    "@media (max-width:520px){svg{overflow:visible}figure{margin-left:1em}svg "
    "text{font-size:19px}th,td{padding-right:.3em;font-size:.85em}}"
    "@media print{:root{--ink:#000;--dim:#444;--paper:#fff;--card:#fff;--grid:#ccc;--judged:#eee;--line:#1f4e8c}"
    "body{max-width:none;margin:0}section,figure,tr{break-inside:avoid}}";

void stk_watch_page_begin(stk_text *out)
{
    stk_text_add(out,
                 STK_WATCH_PAGE "</title><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                                "style-src 'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width\">"
                                "<style>%s</style></head><body>\n",
                 style);
}

/* The report as one page: verdicts, and curves as SVG. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "watch/report.h"

enum { CHART_WIDTH = 860, CHART_HEIGHT = 110, MOST_POINTS = 430 };

static void add_escaped(stk_text *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        switch (*c) {
        case '<': stk_text_add(out, "&lt;"); break;
        case '>': stk_text_add(out, "&gt;"); break;
        case '&': stk_text_add(out, "&amp;"); break;
        case '"': stk_text_add(out, "&quot;"); break;
        default: stk_text_add(out, "%c", *c >= ' ' && *c < 127 ? *c : '?');
        }
    }
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

/* One curve from 0 to its largest value, or to 1 for shares. */
static void add_chart(const stk_watch_history *h, const char *title, size_t offset, bool is_share, stk_text *out)
{
    double most = 0, end_s = h->n ? h->row[h->n - 1].at_s : 0;
    size_t step = h->n / MOST_POINTS + 1;
    for (size_t i = 0; i < h->n; i += step) {
        double x = value_at(h, i, i + step < h->n ? i + step : h->n, offset);
        if (x > most) most = x;
    }
    if (!(most > 0) || !(end_s > 0)) return;
    if (is_share) most = 1;
    stk_text_add(out,
                 "<figure><figcaption>%s <small>0 to %.3g%s</small></figcaption>"
                 "<svg viewBox=\"0 0 %d %d\"><polyline points=\"",
                 title, is_share ? 100.0 : most, is_share ? " %" : "", CHART_WIDTH, CHART_HEIGHT);
    for (size_t i = 0; i < h->n; i += step) {
        double x = value_at(h, i, i + step < h->n ? i + step : h->n, offset);
        if (isfinite(x))
            stk_text_add(out, "%.1f,%.1f ", h->row[i].at_s / end_s * CHART_WIDTH,
                         CHART_HEIGHT - 2 - fmin(1, x / most) * (CHART_HEIGHT - 4));
    }
    stk_text_add(out, "\"/></svg></figure>\n");
}

static void add_verdict(const stk_watch_report *report, const stk_watch_verdict *verdict, stk_text *out)
{
    int order[STK_WATCH_REMEDIES];
    int n = stk_watch_remedies(verdict, stk_watch_facts_get(report->facts, "framework", 0), order);
    stk_text_add(out, "<section class=\"%s\"><h2>", verdict->rule->is_healthy ? "well" : "ill");
    add_escaped(out, verdict->rule->title);
    stk_text_add(out, "</h2><p>%s, confidence %s (%.2f)", verdict->rule->name,
                 stk_watch_confidence_word(verdict->confidence), verdict->confidence);
    if (verdict->cost >= 0.02) stk_text_add(out, ", costs %.0f %% of the time", 100 * verdict->cost);
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
        if (gain >= 1.05) stk_text_add(out, " <b>up to %.1fx</b>", gain);
        stk_text_add(out, "</li>");
    }
    stk_text_add(out, "</ol></section>\n");
}

void stk_watch_report_html(const stk_watch_report *report, stk_text *out)
{
    const char *text;
    stk_text_add(out,
                 "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>stoker watch</title><style>"
                 "body{font:15px/1.5 sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}"
                 "h1{font-size:1.3em}h2{font-size:1.1em;margin:.2em 0}section{border-left:5px solid #c33;"
                 "padding:.2em 1em;margin:1em 0;background:#faf7f5}section.well{border-color:#393}"
                 "figure{margin:1em 0}svg{width:100%%;border:1px solid #ddd;background:#fff}"
                 "polyline{fill:none;stroke:#246;stroke-width:1.3}small{color:#777}</style></head><body>\n<h1>");
    text = stk_watch_facts_get(report->facts, "command", 0);
    add_escaped(out, text ? text : "a running process");
    stk_text_add(out, "</h1><p>%.1f s watched, judged from %.1f to %.1f s</p>\n", report->length_s,
                 report->signals.begin_s, report->signals.end_s);
    if (report->n_verdicts == 0) stk_text_add(out, "<section><h2>no rule holds</h2></section>\n");
    for (int i = 0; i < report->n_verdicts; i++)
        add_verdict(report, &report->verdict[i], out);
    add_chart(report->history, "GPU busy", offsetof(stk_watch_row, gpu_busy), true, out);
    add_chart(report->history, "GPU power", offsetof(stk_watch_row, power), true, out);
    add_chart(report->history, "SMs active", offsetof(stk_watch_row, sm), true, out);
    add_chart(report->history, "cores in use", offsetof(stk_watch_row, cores), false, out);
    add_chart(report->history, "busiest thread", offsetof(stk_watch_row, top), true, out);
    add_chart(report->history, "ready threads that wait for a core", offsetof(stk_watch_row, waited), true, out);
    add_chart(report->history, "read, MB/s", offsetof(stk_watch_row, asked_mbs), false, out);
    add_chart(report->history, "written, MB/s", offsetof(stk_watch_row, put_mbs), false, out);
    stk_text_add(out, "<h2>Not seen</h2><ul>");
    for (size_t i = 0; (text = stk_watch_facts_get(report->facts, "missing", i)); i++) {
        stk_text_add(out, "<li>");
        add_escaped(out, text);
        stk_text_add(out, "</li>");
    }
    stk_text_add(out, "</ul></body></html>\n");
}

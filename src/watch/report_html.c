/* The report as one page: verdicts, and curves as SVG. */
#include "base/plain_number.h"
#include "watch/page.h"

static void add_head(const stk_watch_report *report, stk_text *out)
{
    const char *command = stk_watch_facts_get(report->facts, "command", 0);
    const char *framework = stk_watch_facts_get(report->facts, "framework", 0);
    double joules = report->history->gpu_joules;
    char kj[STK_PLAIN_TEXT], end[120];
    stk_watch_page_begin(out);
    stk_text_add(out, "<h1>");
    stk_watch_page_text(out, command ? command : "a running process");
    stk_text_add(out, "</h1><p>%.1f s watched, judged from %.1f to %.1f s (tinted in the curves)", report->length_s,
                 report->signals.begin_s, report->signals.end_s);
    if (framework) {
        stk_text_add(out, "; ");
        stk_watch_page_text(out, framework);
    }
    if (stk_watch_report_end(report->facts, end, sizeof(end))) stk_text_add(out, "; it ended with %s", end);
    if (joules > 0) stk_text_add(out, "; the GPUs took %s kJ", stk_plain_number(joules / 1000, kj));
    stk_text_add(out, "</p>\n");
}

static void add_line(void *user, const char *label, const char *text)
{
    stk_text *out = user;
    stk_text_add(out, "<tr><th scope=\"row\">%s</th><td>", label);
    stk_watch_page_text(out, text);
    stk_text_add(out, "</td></tr>");
}

void stk_watch_report_html(const stk_watch_report *report, stk_text *out)
{
    const char *text;
    add_head(report, out);
    if (report->n_verdicts == 0)
        stk_text_add(out, "<section><h2>%s</h2></section>\n",
                     stk_watch_report_is_short(report) ? "too short to say: less than 5 s after the start"
                                                       : "no rule holds");
    for (int i = 0; i < report->n_verdicts; i++)
        stk_watch_page_verdict(report, i, out);
    if (report->signals.value[STK_WATCH_account] > 0.5) {
        stk_text_add(out, "<table>");
        if (!stk_watch_account_tell(report, add_line, out)) out->failed = true;
        stk_text_add(out, "</table>\n");
    }
    if (report->held.n_lines > 0) {
        stk_text_add(out, "<h2>What held the driving thread, of %d stacks</h2><ul>", report->held.n_stacks);
        for (int i = 0; i < report->held.n_lines; i++) {
            stk_text_add(out, "<li>%d: ", report->held.n[i]);
            stk_watch_page_text(out, report->held.text[i]);
            stk_text_add(out, "</li>");
        }
        stk_text_add(out, "</ul>\n");
    }
    stk_watch_page_curves(&report, NULL, 1, out);
    stk_text_add(out, "<h2>Not seen</h2><ul>");
    for (size_t i = 0; (text = stk_watch_facts_get(report->facts, "missing", i)); i++) {
        stk_text_add(out, "<li>");
        stk_watch_page_text(out, text);
        stk_text_add(out, "</li>");
    }
    stk_text_add(out, "</ul>");
    if (report->overhead >= 0 && report->length_s > 0.5)
        stk_text_add(out, "<p class=\"dim\">Watching took %.2f %% of one core.</p>", 100 * report->overhead);
    stk_text_add(out, "</body></html>\n");
}

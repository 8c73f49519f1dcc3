/* The joint verdict as text, JSON and one page. */
#include <math.h>
#include <stdio.h>

#include "base/printable.h"
#include "watch/page.h"
#include "watch/together.h"

enum { MOST_NAMED = 4 };

void stk_watch_together_odd(const stk_watch_together *t, stk_text *out)
{
    int n_told = 0, most = t->n_odd <= MOST_NAMED ? t->n_odd : MOST_NAMED - 1;
    for (int i = 0; i < t->n && n_told < most; i++) {
        if (!t->member[i].is_odd) continue;
        n_told++;
        if (n_told > 1) stk_text_add(out, n_told == t->n_odd ? " and " : ", ");
        stk_text_add_printable(out, t->member[i].name);
    }
    if (n_told < t->n_odd) stk_text_add(out, " and %d more", t->n_odd - n_told);
}

/* The whole joint verdict in a sentence, for people. */
static void add_sentence(const stk_watch_together *t, stk_text *out)
{
    if (t->n_odd > 0) {
        stk_watch_together_odd(t, out);
        stk_text_add(out, ": ");
    }
    stk_text_add(out, "%s [%s]", stk_watch_joint_title(t->joint), stk_watch_joint_name(t->joint));
    if (t->joint == STK_WATCH_JOINT_SAME) stk_text_add(out, ": %s", stk_watch_member_verdict(&t->member[0]));
}

static void add_share(stk_text *out, const char *what, double share)
{
    if (isfinite(share)) stk_text_add(out, ", %s %.0f %%", what, 100 * share);
}

static const char not_at_once[] = "the recordings are not of one time: who waits for whom cannot be told by them";

void stk_watch_together_text(const stk_watch_together *t, int width, stk_text *out)
{
    stk_text line = {0};
    stk_text_add(out, "stoker watch, %d recordings together\n", t->n);
    add_sentence(t, &line);
    stk_watch_report_wrap(width, "verdict", stk_text_get(&line), out);
    for (int i = 0; i < t->n_evidence; i++)
        stk_watch_report_wrap(width, i == 0 ? "evidence" : "", t->evidence[i], out);
    if (t->cost >= 0.02) {
        char cost[100];
        snprintf(cost, sizeof(cost), "%.0f %% of the %s time", 100 * t->cost, t->n_odd ? "others'" : "ranks'");
        stk_watch_report_wrap(width, "cost", cost, out);
    }
    if (t->are_apart) stk_watch_report_wrap(width, "note", not_at_once, out);
    for (int i = 0; i < t->n; i++) {
        const stk_watch_member *m = &t->member[i];
        char end[120];
        stk_text_free(&line);
        stk_text_add(&line, "%s %s: %s", m->is_odd ? "*" : "-", m->name, stk_watch_member_verdict(m));
        if (m->report->n_verdicts > 0) stk_text_add(&line, " (%.2f)", m->report->verdict[0].confidence);
        add_share(&line, "sleeps for others", m->waits);
        add_share(&line, "GPU busy", m->busy);
        add_share(&line, "power", m->power);
        if (stk_watch_report_end(m->report->facts, end, sizeof(end))) stk_text_add(&line, "; %s", end);
        stk_watch_report_wrap(width, i == 0 ? "each" : "", stk_text_get(&line), out);
        out->failed = out->failed || line.failed;
    }
    stk_text_free(&line);
}

static void add_number(stk_text *out, const char *name, double x)
{
    if (isfinite(x))
        stk_text_add(out, ", \"%s\": %.6g", name, x);
    else
        stk_text_add(out, ", \"%s\": null", name);
}

void stk_watch_together_json(const stk_watch_together *t, stk_text *out)
{
    int n = 0;
    stk_text_add(out, "{\"joint\": \"%s\", \"title\": \"%s\", \"odd\": [", stk_watch_joint_name(t->joint),
                 stk_watch_joint_title(t->joint));
    for (int i = 0; i < t->n; i++) {
        if (!t->member[i].is_odd) continue;
        if (n++) stk_text_add(out, ", ");
        stk_watch_json_text(out, t->member[i].name);
    }
    stk_text_add(out, "], \"at_one_time\": %s", t->are_apart ? "false" : "true");
    add_number(out, "cost", t->cost);
    stk_text_add(out, ", \"evidence\": [");
    for (int i = 0; i < t->n_evidence; i++) {
        if (i) stk_text_add(out, ", ");
        stk_watch_json_text(out, t->evidence[i]);
    }
    stk_text_add(out, "], \"members\": [");
    for (int i = 0; i < t->n; i++) {
        const stk_watch_member *m = &t->member[i];
        stk_text_add(out, "%s{\"name\": ", i ? ", " : "");
        stk_watch_json_text(out, m->name);
        stk_text_add(out, ", \"odd\": %s, \"verdict\": \"%s\"", m->is_odd ? "true" : "false",
                     stk_watch_member_verdict(m));
        add_number(out, "sleeps_for_others", m->waits);
        add_number(out, "gpu_busy", m->busy);
        add_number(out, "power_busy", m->power);
        add_number(out, "clock", m->clock);
        stk_text_add(out, ", \"report\": ");
        stk_watch_report_json(m->report, out);
        stk_text_add(out, "}");
    }
    stk_text_add(out, "]}\n");
}

static void add_cell(stk_text *out, double share)
{
    if (isfinite(share))
        stk_text_add(out, "<td>%.0f %%</td>", 100 * share);
    else
        stk_text_add(out, "<td>-</td>");
}

static void add_table(const stk_watch_together *t, stk_text *out)
{
    stk_text_add(out, "<table><tr><th></th><th>verdict</th><th>sleeps for others</th><th>GPU busy</th><th>power</th>"
                      "</tr>\n");
    for (int i = 0; i < t->n; i++) {
        const stk_watch_member *m = &t->member[i];
        stk_text_add(out,
                     "<tr%s><td><svg viewBox=\"0 0 20 6\"><polyline class=\"c%d\" points=\"0,3 20,3\"/></svg> "
                     "<a href=\"#m%d\">",
                     m->is_odd ? " class=\"odd\"" : "", i % STK_WATCH_PAGE_COLOURS, i);
        stk_watch_page_text(out, m->name);
        stk_text_add(out, "</a></td><td>%s</td>", stk_watch_member_verdict(m));
        add_cell(out, m->waits);
        add_cell(out, m->busy);
        add_cell(out, m->power);
        stk_text_add(out, "</tr>\n");
    }
    stk_text_add(out, "</table>\n");
}

/* By the machines' clocks, where all of them say when they began. */
static void find_later(const stk_watch_together *t, double *out)
{
    double first_s = INFINITY;
    bool are_known = !t->are_apart;
    for (int i = 0; i < t->n; i++) {
        are_known = are_known && isfinite(t->member[i].began_s);
        first_s = fmin(first_s, t->member[i].began_s);
    }
    for (int i = 0; i < t->n; i++)
        out[i] = are_known ? t->member[i].began_s - first_s : 0;
}

void stk_watch_together_html(const stk_watch_together *t, stk_text *out)
{
    const stk_watch_report *report[STK_WATCH_MOST_MEMBERS];
    double later_s[STK_WATCH_MOST_MEMBERS];
    stk_text line = {0};
    add_sentence(t, &line);
    stk_watch_page_begin(out);
    stk_text_add(out, "<h1>%d recordings together</h1><section class=\"%s\"><h2>", t->n,
                 t->joint >= STK_WATCH_JOINT_SAME ? "well" : "ill");
    stk_watch_page_text(out, stk_text_get(&line));
    stk_text_add(out, "</h2><ul>");
    for (int i = 0; i < t->n_evidence; i++) {
        stk_text_add(out, "<li>");
        stk_watch_page_text(out, t->evidence[i]);
        stk_text_add(out, "</li>");
    }
    if (t->are_apart) stk_text_add(out, "<li>%s</li>", not_at_once);
    stk_text_add(out, "</ul></section>\n");
    add_table(t, out);
    for (int i = 0; i < t->n; i++)
        report[i] = t->member[i].report;
    find_later(t, later_s);
    stk_watch_page_curves(report, later_s, t->n, out);
    for (int i = 0; i < t->n; i++) {
        stk_text_add(out, "<h2 id=\"m%d\">", i);
        stk_watch_page_text(out, t->member[i].name);
        stk_text_add(out, "</h2>\n");
        if (report[i]->n_verdicts == 0) stk_text_add(out, "<section><h2>no rule holds</h2></section>\n");
        for (int k = 0; k < report[i]->n_verdicts; k++)
            stk_watch_page_verdict(report[i], k, out);
    }
    stk_text_add(out, "</body></html>\n");
    out->failed = out->failed || line.failed;
    stk_text_free(&line);
}

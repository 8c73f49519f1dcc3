#include <math.h>
#include <stdlib.h>

#include "watch/own.h"
#include "watch/report.h"
#include "watch/roles.h"

void stk_watch_json_text(stk_text *out, const char *text)
{
    stk_text_add(out, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int n = stk_character_bytes(p);
        if (n == 0)
            stk_text_add(out, "\\ufffd");
        else if (n == 1 && (*p < ' ' || *p == 127))
            stk_text_add(out, "\\u%04x", *p);
        else if (*p == '"' || *p == '\\')
            stk_text_add(out, "\\%c", *p);
        else
            stk_text_add_bytes(out, p, (size_t)n);
        p += n ? n : 1;
    }
    stk_text_add(out, "\"");
}

static void add_number(stk_text *out, double x)
{
    if (isfinite(x))
        stk_text_add(out, "%.6g", x);
    else
        stk_text_add(out, "null");
}

static void add_member(stk_text *out, const char *name, const char *text)
{
    stk_text_add(out, "\"%s\": ", name);
    if (text)
        stk_watch_json_text(out, text);
    else
        stk_text_add(out, "null");
}

static void add_verdict(const stk_watch_report *report, int i_verdict, stk_text *out)
{
    static const char *const kinds[STK_WATCH_TRUST_KINDS] = {"account", "other", "healthy"};
    int order[STK_WATCH_REMEDIES];
    const stk_watch_verdict *verdict = &report->verdict[i_verdict];
    int n = stk_watch_remedies(report->verdict, i_verdict, report->facts, order);
    stk_text_add(out, "{");
    add_member(out, "name", verdict->rule->name);
    stk_text_add(out, ", ");
    add_member(out, "title", verdict->rule->title);
    stk_text_add(out, ", \"healthy\": %s, \"confidence\": %.2f, \"kind\": \"%s\", \"strength\": %.3f, \"share\": ",
                 verdict->rule->is_healthy ? "true" : "false", verdict->confidence, kinds[verdict->kind],
                 verdict->strength);
    add_number(out, verdict->beyond);
    stk_text_add(out, ", \"alone\": ");
    add_number(out, verdict->cost);
    double least, most;
    stk_watch_gain_range(verdict, &least, &most);
    stk_text_add(out, ", \"gain\": [%.4g, %.4g], \"evidence\": [", least, most);
    for (int i = 0; i < verdict->n_evidence; i++) {
        if (i) stk_text_add(out, ", ");
        stk_watch_json_text(out, verdict->evidence[i]);
    }
    stk_text_add(out, "], \"remedies\": [");
    for (int i = 0; i < n; i++) {
        const stk_watch_remedy *remedy = &verdict->rule->remedy[order[i]];
        stk_text_add(out, "%s{", i ? ", " : "");
        add_member(out, "text", remedy->text);
        stk_text_add(out, ", \"at_best\": %.3g}", stk_watch_gain(verdict, remedy));
    }
    stk_text_add(out, "], ");
    add_member(out, "source", verdict->rule->source);
    stk_text_add(out, "}");
}

static void add_list(const stk_watch_report *report, const char *name, const char *key, stk_text *out)
{
    const char *text;
    stk_text_add(out, ", \"%s\": [", name);
    for (size_t i = 0; (text = stk_watch_facts_get(report->facts, key, i)); i++) {
        if (i) stk_text_add(out, ", ");
        stk_watch_json_text(out, text);
    }
    stk_text_add(out, "]");
}

/* A recording may hold anything. */
static void add_whole(const stk_watch_report *report, const char *name, const char *key, stk_text *out)
{
    const char *text = stk_watch_facts_get(report->facts, key, 0);
    char *end = NULL;
    long x = text ? strtol(text, &end, 10) : 0;
    stk_text_add(out, ", \"%s\": ", name);
    if (text && end != text && !*end)
        stk_text_add(out, "%ld", x);
    else
        stk_text_add(out, "null");
}

/* Over the whole time that was watched. */
static void add_totals(const stk_watch_history *history, stk_text *out)
{
    double asked = 0, read = 0, put = 0, sent = 0;
    for (size_t i = 0; i < history->n; i++) {
        const stk_watch_row *row = &history->row[i];
        asked += row->asked_mbs > 0 ? row->asked_mbs * row->length_s : 0;
        read += row->read_mbs > 0 ? row->read_mbs * row->length_s : 0;
        put += row->put_mbs > 0 ? row->put_mbs * row->length_s : 0;
        sent += row->sent_mbs > 0 ? row->sent_mbs * row->length_s : 0;
    }
    stk_text_add(out, ", \"total_mb\": {\"asked\": %.6g, \"read\": %.6g, \"written\": %.6g, \"sent\": %.6g}", asked,
                 read, put, sent);
}

static void add_roles(const stk_watch_signals *signals, stk_text *out)
{
    stk_text_add(out, ", \"roles\": {");
    for (int role = 0, n = 0; role < STK_WATCH_ROLES; role++) {
        if (!(signals->role_threads[role] > 0)) continue;
        stk_text_add(out, "%s\"%s\": {\"threads\": %.4g", n++ ? ", " : "", stk_watch_role_name((stk_watch_role)role),
                     signals->role_threads[role]);
        for (int k = 0; k < STK_WATCH_STATES; k++)
            stk_text_add(out, ", \"%s\": %.4f", stk_watch_state_name((stk_watch_state)k), signals->role[role][k]);
        stk_text_add(out, "}");
    }
    stk_text_add(out, "}");
}

void stk_watch_report_json(const stk_watch_report *report, stk_text *out)
{
    stk_text_add(out, "{\"verdicts\": [");
    for (int i = 0; i < report->n_verdicts; i++) {
        if (i) stk_text_add(out, ", ");
        add_verdict(report, i, out);
    }
    stk_text_add(out, "], \"signals\": {");
    for (int i = 0, n = 0; i < STK_WATCH_SIGNALS; i++) {
        if (!isfinite(report->signals.value[i])) continue;
        stk_text_add(out, "%s\"%s\": ", n++ ? ", " : "", stk_watch_signal_name((stk_watch_signal)i));
        add_number(out, report->signals.value[i]);
    }
    stk_text_add(out, "}, ");
    add_member(out, "command", stk_watch_facts_get(report->facts, "command", 0));
    stk_text_add(out, ", ");
    add_member(out, "framework", stk_watch_facts_get(report->facts, "framework", 0));
    const char *driver;
    int64_t driver_id = stk_watch_report_driver(report, &driver);
    if (driver_id > 0) {
        stk_text_add(out, ", \"driver\": {\"process\": %lld, \"name\": ", (long long)driver_id);
        stk_watch_json_text(out, driver);
        stk_text_add(out, "}");
    }
    add_roles(&report->signals, out);
    stk_watch_own own;
    if (stk_watch_own_get(report->facts, &own))
        stk_text_add(out, ", \"own\": {\"input\": %.4f, \"host\": %.4f, \"launch\": %.4f, \"compute\": %.4f}",
                     own.input, own.host, own.launch, own.compute);
    stk_text_add(out, ", \"stacks\": {\"n\": %d, \"most\": [", report->held.n_stacks);
    for (int i = 0; i < report->held.n_lines; i++) {
        stk_text_add(out, "%s{\"n\": %d, ", i ? ", " : "", report->held.n[i]);
        add_member(out, "lines", report->held.text[i]);
        stk_text_add(out, "}");
    }
    stk_text_add(out, "]}");
    add_list(report, "gpus", "gpu", out);
    add_list(report, "missing", "missing", out);
    stk_text_add(out, ", \"length_s\": %.3f, \"judged_from_s\": %.3f, \"judged_to_s\": %.3f, \"overhead\": ",
                 report->length_s, report->signals.begin_s, report->signals.end_s);
    add_number(out, report->overhead);
    add_totals(report->history, out);
    stk_text_add(out, ", \"gpu_joules\": ");
    add_number(out, report->history->gpu_joules_s > 0 ? report->history->gpu_joules : NAN);
    add_whole(report, "exit_code", "exit", out);
    add_whole(report, "signal", "signal", out);
    stk_text_add(out, "}\n");
}

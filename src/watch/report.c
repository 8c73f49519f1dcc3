#include "watch/report.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_number.h"
#include "base/printable.h"
#include "watch/own.h"

enum { WIDTH = 110, INDENT = 12 };
enum { MOST_TOLD = 10 }; /* a gain beyond it rests on the few hundredths that are left: its number is not known */

void stk_watch_report_make(const stk_watch_history *history, const stk_watch_facts *facts, stk_watch_report *out)
{
    memset(out, 0, sizeof(*out));
    out->facts = facts;
    out->history = history;
    out->overhead = NAN;
    out->width = WIDTH;
    out->length_s = history->n ? history->row[history->n - 1].at_s : 0;
    stk_watch_signals_find(history, facts, &out->signals);
    stk_watch_stacks_sum(facts, out->signals.begin_s, out->signals.end_s, &out->held);
    out->n_verdicts = stk_watch_judge(&out->signals, out->verdict);
}

/* --- words in lines --- */

/* "  label     text", where long texts go on below their beginning. */
void stk_watch_report_wrap(int width, const char *label, const char *text, stk_text *out)
{
    char shown[2048]; /* Paths and names of processes stand in it. */
    text = stk_printable(text, shown, sizeof(shown));
    int at = INDENT, hang = text[0] >= '1' && text[0] <= '9' && text[1] == '.' ? 3 : 0, n_words = 0;
    stk_text_add(out, "  %-9s ", label);
    for (const char *p = text + strspn(text, " "); *p; p += strspn(p, " ")) {
        int n = (int)strcspn(p, " ");
        if (!strncmp(p + n, " %", 2)) n += 2 + (int)strcspn(p + n + 2, " "); /* "80 %" is one word */
        if (n_words > 0 && at + 1 + n > width) {
            stk_text_add(out, "\n%*s", INDENT + hang, "");
            at = INDENT + hang;
            n_words = 0;
        }
        stk_text_add(out, "%s%.*s", n_words > 0 ? " " : "", n, p);
        at += n + (n_words++ > 0);
        p += n;
    }
    stk_text_add(out, "\n");
}

static void add_wrapped(const stk_watch_report *report, stk_text *out, const char *label, const char *text)
{
    stk_watch_report_wrap(report->width, label, text, out);
}

static void add_remedies(const stk_watch_report *report, int i_verdict, stk_text *out)
{
    int order[STK_WATCH_REMEDIES];
    const stk_watch_verdict *verdict = &report->verdict[i_verdict];
    int n = stk_watch_remedies(report->verdict, i_verdict, report->facts, order);
    if (n == 0) add_wrapped(report, out, "remedies", "those above");
    for (int i = 0; i < n; i++) {
        const stk_watch_remedy *remedy = &verdict->rule->remedy[order[i]];
        double gain = stk_watch_gain(verdict, remedy);
        char line[512];
        if (gain >= 1.05)
            snprintf(line, sizeof(line), "%d. %s (up to %.1fx)", i + 1, remedy->text, gain);
        else
            snprintf(line, sizeof(line), "%d. %s%s", i + 1, remedy->text, remedy->wins > 0 ? " (less than 5 %)" : "");
        add_wrapped(report, out, i == 0 ? "remedies" : "", line);
    }
}

static void add_evidence(const stk_watch_report *report, const stk_watch_verdict *verdict, stk_text *out)
{
    stk_text line = {0};
    for (int i = 0; i < verdict->n_evidence; i++)
        stk_text_add(&line, "%s%s", i ? "; " : "", verdict->evidence[i]);
    add_wrapped(report, out, "evidence", stk_text_get(&line));
    if (line.failed) out->failed = true;
    stk_text_free(&line);
}

bool stk_watch_report_cost(const stk_watch_verdict *verdict, char *out, size_t bytes)
{
    bool is_all = verdict->beyond >= verdict->cost;
    double least, most;
    stk_watch_gain_range(verdict, &least, &most);
    if (!(verdict->cost >= 0.02)) return false;
    char range[60];
    if (least > MOST_TOLD)
        snprintf(range, sizeof(range), "more than %d", MOST_TOLD);
    else if (most > MOST_TOLD)
        snprintf(range, sizeof(range), "%.1f to more than %d", least, MOST_TOLD);
    else
        snprintf(range, sizeof(range), "%.1f to %.1f", least, most);
    if (!(most > 1))
        snprintf(out, bytes, "%.0f %% of the time judged", 100 * verdict->cost);
    else if (is_all)
        snprintf(out, bytes, "%.0f %% of the time judged: without it the job could be %s times as fast",
                 100 * verdict->cost, range);
    else if (verdict->beyond >= 0.02)
        snprintf(out, bytes, "%.0f %% of the time judged, besides what is counted above", 100 * verdict->beyond);
    else
        snprintf(out, bytes, "the same time that is counted above");
    return true;
}

static void add_verdict(const stk_watch_report *report, int i, stk_text *out)
{
    const stk_watch_verdict *verdict = &report->verdict[i];
    char line[300];
    snprintf(line, sizeof(line), "%s [%s], confidence %s (%.2f)", verdict->rule->title, verdict->rule->name,
             stk_watch_confidence_word(verdict->confidence), verdict->confidence);
    add_wrapped(report, out, i == 0 ? "verdict" : "also", line);
    add_evidence(report, verdict, out);
    if (stk_watch_report_cost(verdict, line, sizeof(line))) add_wrapped(report, out, "cost", line);
    add_remedies(report, i, out);
}

/* Of the GPUs in use, while they were in use. */
static void add_energy(const stk_watch_report *report, stk_text *out)
{
    double joules = report->history->gpu_joules, s = report->history->gpu_joules_s;
    char line[160], kj[STK_PLAIN_TEXT];
    if (!(joules > 0) || !(s >= 1)) return;
    snprintf(line, sizeof(line), "%s kJ by the GPUs in use, %.0f W a GPU on average (NVML)",
             stk_plain_number(joules / 1000, kj), joules / s);
    add_wrapped(report, out, "energy", line);
}

static void add_missing(const stk_watch_report *report, stk_text *out)
{
    const char *text;
    for (size_t i = 0; (text = stk_watch_facts_get(report->facts, "missing", i)); i++)
        add_wrapped(report, out, i == 0 ? "not seen" : "", text);
}

/* The names that shells have for signals that end programs. */
static const char *name_of_signal(int number)
{
    static const struct {
        int signal;
        const char *name;
    } known[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
                 {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
                 {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"},
                 {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].signal == number) return known[i].name;
    return NULL;
}

bool stk_watch_report_end(const stk_watch_facts *facts, char *out, size_t bytes)
{
    const char *exit_text = stk_watch_facts_get(facts, "exit", 0),
               *signal_text = stk_watch_facts_get(facts, "signal", 0);
    int code = exit_text ? atoi(exit_text) : 0, killer = signal_text ? atoi(signal_text) : 0;
    if (code == 0) return false;
    const char *name = name_of_signal(killer > 0 ? killer : code - 128);
    if (killer > 0)
        snprintf(out, bytes, "exit code %d: killed by signal %d%s%s%s", code, killer, name ? " (" : "",
                 name ? name : "", name ? ")" : "");
    else if (name)
        snprintf(out, bytes, "exit code %d (as a shell says for %s)", code, name);
    else
        snprintf(out, bytes, "exit code %d", code);
    return true;
}

/* How the command ended, where that was not as it should. */
static void add_end(const stk_watch_report *report, stk_text *out)
{
    char line[120];
    if (stk_watch_report_end(report->facts, line, sizeof(line))) add_wrapped(report, out, "ended", line);
}

/* What the run itself says, which is what the verdicts go by. */
static void add_own(const stk_watch_report *report, stk_text *out)
{
    static const char *const names[STK_WATCH_OWN_PARTS] = {"input", "host", "launch", "compute", "other"};
    int permille[STK_WATCH_OWN_PARTS];
    stk_watch_own own;
    stk_text line = {0};
    if (!stk_watch_own_get(report->facts, &own)) return;
    stk_watch_own_round(&own, permille);
    stk_text_add(&line, "time went to");
    for (int i = 0; i < STK_WATCH_OWN_PARTS; i++)
        if (i < STK_WATCH_OWN_PARTS - 1 || permille[i] > 0)
            stk_text_add(&line, "%s %s %d.%d %%", i ? "," : "", names[i], permille[i] / 10, permille[i] % 10);
    stk_text_add(&line, " of all its time, with the waits for a core in each");
    add_wrapped(report, out, "run says", stk_text_get(&line));
    if (line.failed) out->failed = true;
    stk_text_free(&line);
}

/* Of the account, as the page has them, too. */
typedef struct lines {
    const stk_watch_report *report;
    stk_text *out;
} lines;

static void add_line(void *user, const char *label, const char *text)
{
    const lines *l = user;
    add_wrapped(l->report, l->out, label, text);
}

/* The lines that held the driving thread, innermost first. */
static void add_stacks(const stk_watch_report *report, stk_text *out)
{
    for (int i = 0; i < report->held.n_lines; i++) {
        char line[STK_WATCH_STACK_LINE + 40];
        snprintf(line, sizeof(line), "%d of %d: %s", report->held.n[i], report->held.n_stacks, report->held.text[i]);
        add_wrapped(report, out, i == 0 ? "stacks" : "", line);
    }
}

bool stk_watch_report_is_short(const stk_watch_report *report)
{
    return report->signals.end_s - report->signals.begin_s < STK_WATCH_LEAST_S - 0.3;
}

void stk_watch_report_text(const stk_watch_report *report, stk_text *out)
{
    const char *framework = stk_watch_facts_get(report->facts, "framework", 0);
    const double *x = report->signals.value;
    char line[300];
    snprintf(line, sizeof(line), "%.1f s%s%s, judged from %.1f to %.1f s", report->length_s, framework ? ", " : "",
             framework ? framework : "", report->signals.begin_s, report->signals.end_s);
    stk_text_add(out, "stoker watch\n");
    add_wrapped(report, out, "watched", line);
    add_end(report, out);
    add_own(report, out);
    if (report->n_verdicts == 0) {
        snprintf(line, sizeof(line), "%s. The job uses %.1f cores",
                 stk_watch_report_is_short(report) ? "none: too short to say, less than 5 s after the start"
                                                   : "none: no rule holds",
                 x[STK_WATCH_cores]);
        add_wrapped(report, out, "verdict",
                    report->signals.end_s > report->signals.begin_s ? line : "none: too little was seen");
    }
    if (!stk_watch_account_tell(report, add_line, &(lines){report, out})) out->failed = true;
    add_stacks(report, out);
    for (int i = 0; i < report->n_verdicts; i++)
        add_verdict(report, i, out);
    add_energy(report, out);
    add_missing(report, out);
    /* Of a moment, starting takes most. */
    if (report->overhead >= 0 && report->length_s > 0.5) {
        snprintf(line, sizeof(line), "%.2f %% of one core", 100 * report->overhead);
        add_wrapped(report, out, "overhead", line);
    }
}

void stk_watch_report_line(const stk_watch_report *report, stk_text *out)
{
    const stk_watch_history *h = report->history;
    if (h->n == 0) return;
    const stk_watch_row *row = &h->row[h->n - 1];
    int64_t s = (int64_t)report->length_s;
    stk_text_add(out, "watch %" PRId64 ":%02" PRId64, s / 60, s % 60);
    if (row->gpus_used > 0) stk_text_add(out, "  GPU %.0f %%", 100 * row->gpu_busy);
    if (row->power >= 0) stk_text_add(out, " power %.0f %%", 100 * row->power);
    if (row->cores >= 0) stk_text_add(out, "  %.1f of %.0f cores", row->cores, row->machine_cores);
    if (row->asked_mbs >= 0) stk_text_add(out, "  read %.1f MB/s", row->asked_mbs);
    if (row->disk_wait + row->remote_wait > 0) stk_text_add(out, "  waits for files");
    if (report->n_verdicts > 0)
        stk_text_add(out, "  -> %s", report->verdict[0].rule->name);
    else
        stk_text_add(out, "  -> no verdict yet");
}

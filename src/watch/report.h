/* What the doctor says, as text, JSON and HTML. Threads: any. */
#ifndef STK_WATCH_REPORT_H
#define STK_WATCH_REPORT_H

#include "base/text.h"
#include "watch/rules.h"
#include "watch/stacks.h"

typedef struct stk_watch_report {
    const stk_watch_facts *facts;     /* borrowed, as the next */
    const stk_watch_history *history; /* for pictures */
    stk_watch_signals signals;
    stk_watch_verdict verdict[STK_WATCH_VERDICTS];
    int n_verdicts;
    stk_watch_held held;       /* by what the driving thread was, where stacks were taken */
    double length_s, overhead; /* overhead: share of a core; NaN: not known */
    int width;                 /* of lines of text, in characters; 110 by default */
} stk_watch_report;

/* Judges what was seen. Pointers stay borrowed. */
void stk_watch_report_make(const stk_watch_history *history, const stk_watch_facts *facts, stk_watch_report *out);

void stk_watch_report_text(const stk_watch_report *report, stk_text *out);
/* One object: verdicts, signals, roles, missing, framework, command, length_s, overhead, total_mb, exit_code, signal.
 */
void stk_watch_report_json(const stk_watch_report *report, stk_text *out);
/* One page that needs no network. */
/* How a page begins, which tells it from others. */
#define STK_WATCH_PAGE "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>stoker watch"
void stk_watch_report_html(const stk_watch_report *report, stk_text *out);
/* A line for a terminal while the job runs. */
void stk_watch_report_line(const stk_watch_report *report, stk_text *out);

/* The process whose first thread drives the step, and its name, "" where it is not known; 0: none was found. */
int64_t stk_watch_report_driver(const stk_watch_report *report, const char **name);
/* Tells the account line by line: the label ("driver", "account", or a role) and the text, both for the time
 * of the call. Nothing where nobody drives. False: out of memory. */
typedef void stk_watch_tell_line(void *user, const char *label, const char *text);
bool stk_watch_account_tell(const stk_watch_report *report, stk_watch_tell_line *tell, void *user);

/* "  label     text" in lines of that width, where long texts go on below their beginning. */
void stk_watch_report_wrap(int width, const char *label, const char *text, stk_text *out);
/* What a verdict costs, in words; false where that is nothing, or no matter of time. */
bool stk_watch_report_cost(const stk_watch_verdict *verdict, char *out, size_t bytes);
/* Whether what could be judged is less than a verdict needs. */
bool stk_watch_report_is_short(const stk_watch_report *report);
/* "exit code 7", and what that means; false where the command ended as it should. */
bool stk_watch_report_end(const stk_watch_facts *facts, char *out, size_t bytes);

/* Text in JSON's quotes; bytes that are no UTF-8 become U+FFFD. */
void stk_watch_json_text(stk_text *out, const char *text);

#endif

/* The doctor: watches any command or process and says what holds it back. This is all that a program needs: open,
 * take samples until the job ends, ask for the report. Needs libc only; NVIDIA's library is loaded where it is there.
 * Sources of the rules: rules.c. Threads: one at a time.
 */
#ifndef STK_WATCH_WATCH_H
#define STK_WATCH_WATCH_H

#include "watch/record.h"
#include "watch/report.h"
#include "watch/sampler.h"
#include "watch/stacks.h"

typedef struct stk_watch {
    stk_watch_sampler sampler; /* unused in a replay, but for its facts */
    stk_watch_history history;
    stk_watch_recorder recorder;
    stk_watch_stacks stacks;
    bool takes_stacks; /* asks for what the driving thread is at; set after opening */
    bool is_open;
} stk_watch;

/* record: a file to write, or NULL. */
stk_status stk_watch_open(stk_watch *watch, const stk_watch_config *config, const char *record);
/* One sample. *is_over: nothing is left of the job. */
stk_status stk_watch_take(stk_watch *watch, bool *is_over);
/* Reads a recording instead. Errors: STK_IO, STK_CORRUPT. */
stk_status stk_watch_replay(stk_watch *watch, const char *path);
/* What can be said by now. Borrows from watch. */
void stk_watch_report_now(const stk_watch *watch, stk_watch_report *out);
/* Notes how the job ended (exit_code -1: nobody knows; by_signal 0: by itself) and closes the recording; then the
 * report is what a replay will give. */
stk_status stk_watch_finish(stk_watch *watch, int exit_code, int by_signal);
/* A watch that is zero or closed is fine. */
void stk_watch_close(stk_watch *watch);

#endif

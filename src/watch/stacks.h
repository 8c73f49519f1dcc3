/* What the driving thread is at, by py-spy or gdb where the user asks for it: each is run for a moment now and then,
 * and the innermost lines of that thread become a fact, "stack". Threads: one at a time. */
#ifndef STK_WATCH_STACKS_H
#define STK_WATCH_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/facts.h"

enum { STK_WATCH_STACK_TEXT = 16384, STK_WATCH_STACK_LINE = 330, STK_WATCH_STACK_LINES = 3 };

typedef struct stk_watch_stacks {
    pid_t tool; /* 0: none runs */
    int fd;     /* what it says */
    bool is_py_spy;
    int64_t process; /* that is looked at */
    double begun_s, next_s;
    size_t n;
    char text[STK_WATCH_STACK_TEXT];
} stk_watch_stacks;

/* Starts a tool when it is time, and takes what an earlier one has said; waits for nothing. now_s: since watching
 * began; process: whose first thread drives the step. The time between two grows with the run, so that there are always
 * more than ten of its last half. What cannot be had becomes a fact "missing". Errors: out of memory. */
stk_status stk_watch_stacks_step(stk_watch_stacks *stacks, double now_s, int64_t process, stk_watch_facts *facts);
/* Ends a tool that runs. */
void stk_watch_stacks_end(stk_watch_stacks *stacks);

/* The three innermost lines of that thread, innermost first, "work (x.py:7) < run (x.py:20)". False: there are none. */
bool stk_watch_parse_py_spy(const char *text, int64_t thread, char out[STK_WATCH_STACK_LINE]);
/* The same of gdb's "bt" of one thread; functions without a source have their name alone. */
bool stk_watch_parse_gdb(const char *text, char out[STK_WATCH_STACK_LINE]);

/* What held it most often from begin_s to end_s: the texts, borrowed from facts, and how often. Returns how many stacks
 * there are in that time. */
typedef struct stk_watch_held {
    const char *text[STK_WATCH_STACK_LINES];
    int n[STK_WATCH_STACK_LINES], n_lines, n_stacks;
} stk_watch_held;
void stk_watch_stacks_sum(const stk_watch_facts *facts, double begin_s, double end_s, stk_watch_held *out);

#endif

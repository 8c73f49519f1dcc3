/* What is wrong with a job, by two signals that do not depend on each other: the beats of its ranks (and the system's
 * word on processes of this host), and the numbers of the collectives that they are in. Arithmetic on a table and a
 * time; nothing is asked here. Threads: any, on tables of their own.
 *
 * gone: its process has ended without a word. At once.
 * failed: it has ended with an error of its own. At once.
 * silent: no beat of it for silent_ms, while others' come; where it is a process of this host, whether it is stopped.
 * stuck: it beats, and others wait for it in a collective for stuck_ms.
 * together: all wait in collectives for stuck_ms, and none goes on.
 * slow: over slow_ms of steps the others wait for it for most of the time; or for a good part of it, while it is held
 * up itself, as no other is: it is stopped again and again, or has no core to itself.
 */
#ifndef STK_ELASTIC_JUDGE_H
#define STK_ELASTIC_JUDGE_H

#include "base/text.h"
#include "elastic/table.h"

#define STK_FAULT_LIST(X)                                                                                              \
    X(none)                                                                                                            \
    X(failed)                                                                                                          \
    X(gone)                                                                                                            \
    X(silent)                                                                                                          \
    X(stuck)                                                                                                           \
    X(together)                                                                                                        \
    X(slow)
#define X(name) STK_FAULT_##name,
typedef enum stk_fault_kind { STK_FAULT_LIST(X) STK_N_FAULTS } stk_fault_kind;
#undef X

typedef struct stk_judge_limits {
    int64_t silent_ms, stuck_ms, slow_ms;
    int64_t start_ms; /* instead of stuck_ms before a rank's first step, while it evaluates and while it saves */
    bool only_heard;  /* a rank that was never heard is not judged: its host may not reach this one */
} stk_judge_limits;

typedef struct stk_finding {
    stk_fault_kind kind;
    int rank;
    bool is_certain; /* both signals say so */
    int64_t for_ms;
} stk_finding;

/* What a judge keeps from look to look; all 0 at first. */
typedef struct stk_judging {
    stk_judge_limits limits;
    int64_t looked_ns, calm_ns, slow_ns;
    int slow; /* rank that was slow at slow_ns */
} stk_judging;

/* 2.5, 8 and 7 seconds; a minute. */
stk_judge_limits stk_judge_limits_default(void);
/* The worst that is found; kind STK_FAULT_none: nothing. */
stk_finding stk_judge_ranks(const stk_beat_table *table, int64_t now_ns, const stk_judge_limits *limits);
/* The same for one who looks again and again. A rank stays slow until it was not for slow_ms. False: this process
 * itself did not run for a while, as its machine slept, and for some seconds nothing is judged. */
bool stk_judge_look(stk_judging *judge, const stk_beat_table *table, int64_t now_ns, stk_finding *out);
/* "gone". A constant. */
const char *stk_fault_name(stk_fault_kind kind);
/* One line for people: which rank, where, what it did, and what the others do; and its last lines behind that. */
void stk_finding_add(stk_text *out, const stk_beat_table *table, const stk_finding *finding);

#endif

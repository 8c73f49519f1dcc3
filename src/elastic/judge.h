/* What is wrong with a job, by two signals that do not depend on each other: the beats of its ranks (and the system's
 * word on processes of this host), and the numbers of the collectives that they are in. Arithmetic on a table and a
 * time; nothing is asked here. Threads: any, on tables of their own.
 *
 *   gone      its process has ended without a word                         at once
 *   silent    no beat of it, while others' come; stopped, where it is       after silent_ms; others wait for it:
 * certain stuck     it beats, and the others wait for it in a collective          after stuck_ms together  all wait in
 * collectives, and none goes on                     after stuck_ms slow      the others wait for it most of the time,
 * step after step      after slow_ms failed    it has ended with an error of its own                         at once
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
} stk_judge_limits;

typedef struct stk_finding {
    stk_fault_kind kind;
    int rank;
    bool is_certain; /* both signals say so */
    int64_t for_ms;
} stk_finding;

/* 2.5, 8 and 7 seconds; a minute. */
stk_judge_limits stk_judge_limits_default(void);
/* The worst that is found; kind STK_FAULT_none: nothing. */
stk_finding stk_judge_ranks(const stk_beat_table *table, int64_t now_ns, const stk_judge_limits *limits);
/* "gone". A constant. */
const char *stk_fault_name(stk_fault_kind kind);
/* One line for people: which rank, where, what it did, and what the others do; and its last lines behind that. */
void stk_finding_add(stk_text *out, const stk_beat_table *table, const stk_finding *finding);

#endif

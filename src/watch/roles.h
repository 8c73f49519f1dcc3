/* What the threads of a job are for, and what those of each role are at. Time on cores is measured; what they sleep for
 * is looked at ten times a second. Threads: one at a time. */
#ifndef STK_WATCH_ROLES_H
#define STK_WATCH_ROLES_H

#include "watch/history.h"
#include "watch/span.h"

/* Offsets in a row, as STK_WATCH_FIELD: of a role's state, and of its page faults. */
#define STK_WATCH_ROLE_FIELD(role_, state)                                                                             \
    (offsetof(stk_watch_row, role) + ((size_t)(role_)*STK_WATCH_STATES + (size_t)(state)) * sizeof(double))
#define STK_WATCH_ROLE_FAULTS(role_) (offsetof(stk_watch_row, role_faults) + (size_t)(role_) * sizeof(double))

/* Before the row's threads are added. */
void stk_watch_roles_clear(stk_watch_row *row);
/* Adds what a thread did since the last sample, in which it was old. driver: whose first thread drives the step. */
void stk_watch_roles_add(stk_watch_history *history, stk_watch_row *row, const stk_watch_sample *now,
                         const stk_watch_thread *thread, const stk_watch_thread *old, int64_t driver);

const char *stk_watch_role_name(stk_watch_role role);
/* In words, and as a name in JSON. */
const char *stk_watch_state_text(stk_watch_state state);
const char *stk_watch_state_name(stk_watch_state state);
/* How many threads have that role on average over the span, and each part of the time of one of them: shares that sum
 * up to 1. 0 where there are none. */
double stk_watch_role_mean(const stk_watch_span *s, stk_watch_role role, double share[STK_WATCH_STATES]);

#endif

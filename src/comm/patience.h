/* How long somebody has waited, by own count: time between two looks counts as at most LOOK_NS, so that a process which
 * was stopped, or a machine that slept, does not take others for late. And how eagerly: whoever waits for ranks next to
 * threads that compute leaves them the cores, until somebody waits for what it does.
 */
#ifndef STK_COMM_PATIENCE_H
#define STK_COMM_PATIENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { STK_PATIENCE_LOOK_NS = 100000000 };

typedef struct stk_patience {
    int64_t looked_ns; /* 0: the wait has not begun */
    int64_t waited_ns;
} stk_patience;

/* A look at the clock, often while waiting. */
static inline void stk_patience_look(stk_patience *p, int64_t now_ns)
{
    int64_t more = p->looked_ns ? now_ns - p->looked_ns : 0;
    p->waited_ns += more < STK_PATIENCE_LOOK_NS ? more : STK_PATIENCE_LOOK_NS;
    p->looked_ns = now_ns;
}

/* timeout_ms 0 or less: never. */
static inline bool stk_patience_is_over(const stk_patience *p, int timeout_ms)
{
    return timeout_ms > 0 && p->waited_ns > (int64_t)timeout_ms * 1000000;
}

typedef struct stk_pace {
    atomic_bool is_early, is_over; /* nobody needs it yet; it is no longer wanted */
    atomic_int n_waiting;          /* for it */
} stk_pace;

static inline bool stk_pace_is_eager(const stk_pace *pace)
{
    return !atomic_load_explicit(&pace->is_early, memory_order_relaxed) ||
           atomic_load_explicit(&pace->n_waiting, memory_order_relaxed) > 0;
}

static inline void stk_pace_rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

#endif

/* How long each way to compute a call takes on this very processor: for choices that are measured (measured.h), and for
 * the tables of families (bench/bench_ways.c).
 *
 * All ways take turns; one that is far behind gets no more. In each turn the fastest of a few runs of a way is held
 * against that of the way that is fastest in all, and the median of these ratios counts: on a shared machine a core may
 * be twice as fast for a moment, which one way alone would have met. Weights that a program would keep packed
 * (engine/packed.h) are packed once. The inputs are neither zeros nor denormal.
 *
 * Threads: one at a time for each device, and none while it computes.
 */
#ifndef STK_DEVICE_CPU_TIMING_H
#define STK_DEVICE_CPU_TIMING_H

#include "device/cpu/impl.h"

enum { STK_MOST_WAYS = 8, STK_MOST_TURNS = 9 };

typedef struct stk_timing {
    int n_turns;              /* 1 to STK_MOST_TURNS */
    int n_sure_turns;         /* that each way gets, however far behind */
    double hopeless;          /* times the best: no more turns */
    double turn_s;            /* a way's runs in a turn go on for so long */
    int fewest_runs;          /* and are no fewer */
    int64_t end_ns;           /* of stk_clock_ns: no run begins behind it; 0: never */
    const volatile int *stop; /* no run begins once it is not 0; NULL: never */
} stk_timing;

typedef struct stk_timed_way {
    const char *name; /* of stk_cpu_ways_of */
    double ns;        /* a run */
} stk_timed_way;

/* Each way that can do the call, by name, in the order of its list; *n: how many. *in_time is false, and no ns is worth
 * anything, where the time was over before all had their sure turns. Takes memory for the call's tensors and gives it
 * back. */
stk_status stk_time_ways(stk_device *device, const stk_op_call *call, const stk_timing *how,
                         stk_timed_way out[STK_MOST_WAYS], int *n, bool *in_time);
/* Which of the ways the device takes for the call: what it makes does the same as that one. "other": none of them. */
stk_status stk_name_way(stk_device *device, const stk_op_call *call, const char **out);

#endif

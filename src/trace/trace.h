/* Cheap recording of what happens when: slices of time and counters, into a ring of fixed size for each thread, without
 * a lock. Any layer may record; none knows who reads. Off, which is the rule, a call is one load and one branch.
 *
 *   int64_t begin = stk_trace_begin();
 *   ...
 *   stk_trace_end(begin, STK_TRACE_DATA, "decode", 0);
 *
 * A ring that is full loses its oldest events, and counts them. Threads: any may record; one at a time starts, stops
 * and reads. One trace at a time in a process.
 */
#ifndef STK_TRACE_TRACE_H
#define STK_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "stoker/status.h"

typedef enum stk_trace_kind {
    STK_TRACE_STEP,       /* value: its number */
    STK_TRACE_INPUT,      /* the consumer waits for a batch; value: the batch */
    STK_TRACE_DATA,       /* work on samples; value: a batch, or how many stages run as one */
    STK_TRACE_HOST,       /* anything else */
    STK_TRACE_LAUNCH,     /* between two kernels; value: which launch */
    STK_TRACE_KERNEL,     /* value: which launch */
    STK_TRACE_CHECKPOINT, /* value: the step */
    STK_TRACE_COUNTER     /* no slice: value at begin_ns */
} stk_trace_kind;

/* What is known of a kernel before it runs. */
typedef struct stk_trace_kernel {
    char op[32], layer[64], shape[96]; /* "conv2d", "layer1.0.conv1", "f32[8,32,32,64]"; layer "": none */
    const char *impl, *work;           /* which code it is; what it is for, "conv". Constants */
    double flops, bytes;
    int64_t alive_bytes; /* in the arena while it runs */
    int32_t node;        /* of the program's graph; -1: a copy */
} stk_trace_kernel;

typedef struct stk_trace_event {
    int64_t begin_ns, end_ns;       /* of stk_clock_ns */
    const char *name;               /* lives as long as the program that recorded it */
    const stk_trace_kernel *kernel; /* of LAUNCH and KERNEL */
    int64_t value;
    stk_trace_kind kind;
} stk_trace_event;

extern atomic_bool stk_trace_is_on;

static inline bool stk_trace_on(void)
{
    return atomic_load_explicit(&stk_trace_is_on, memory_order_relaxed);
}

/* 0 while off. */
static inline int64_t stk_trace_begin(void)
{
    return stk_trace_on() ? stk_clock_ns() : 0;
}

void stk_trace_add(const stk_trace_event *event);

/* Does nothing where begin is 0. */
static inline void stk_trace_end(int64_t begin, stk_trace_kind kind, const char *name, int64_t value)
{
    if (!begin) return;
    stk_trace_event event = {.begin_ns = begin, .end_ns = stk_clock_ns(), .name = name, .value = value, .kind = kind};
    stk_trace_add(&event);
}

static inline void stk_trace_count(const char *name, int64_t value)
{
    if (!stk_trace_on()) return;
    stk_trace_event event = {.begin_ns = stk_clock_ns(), .name = name, .value = value, .kind = STK_TRACE_COUNTER};
    stk_trace_add(&event);
}

/* Forgets the last trace and records from now on. Rings stay allocated for the next one: a thread may be late to see
 * that recording has stopped. */
void stk_trace_start(void);
void stk_trace_stop(void);

/* One thread's events. */
typedef struct stk_trace_track {
    char thread[16];
    int64_t thread_id;
    int64_t n, n_lost;
} stk_trace_track;
/* After stop: thread number i, from 0; false past the last. */
bool stk_trace_get_track(int i, stk_trace_track *out);
/* Event number k of thread i, oldest first. */
stk_trace_event stk_trace_get_event(int i, int64_t k);
#endif

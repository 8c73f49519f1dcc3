/* See trace/trace.h. A thread takes a ring when it records its first event of a trace, by counting up; it is the only
 * one that writes there. What it wrote is made visible by `n`. A thread that passed the branch just before the trace
 * was stopped may still write one event, over the oldest one, which is therefore not read.
 */
#include "trace/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RINGS = 512, N_EVENTS = 1 << 16 };

typedef struct ring {
    stk_trace_event *event; /* [N_EVENTS] */
    _Atomic int64_t n;      /* recorded in all */
    char thread[16];
    int64_t thread_id;
} ring;

atomic_bool stk_trace_is_on;
static ring rings[MOST_RINGS];
static atomic_int n_rings;
static _Atomic int64_t generation; /* of the trace; grows with each start */
static _Thread_local ring *mine;
static _Thread_local int64_t my_generation;

/* NULL where there are too many threads, or no memory: such a thread's events are not recorded. */
static ring *take_ring(void)
{
    int i = atomic_fetch_add(&n_rings, 1);
    if (i >= MOST_RINGS) return NULL;
    ring *r = &rings[i];
    if (!r->event) r->event = malloc(N_EVENTS * sizeof(*r->event)); /* Its pages are touched as they are filled. */
    if (!r->event) return NULL;
    if (pthread_getname_np(pthread_self(), r->thread, sizeof(r->thread)) != 0) r->thread[0] = 0;
    r->thread_id = (int64_t)gettid();
    return r;
}

void stk_trace_add(const stk_trace_event *event)
{
    int64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    if (my_generation != now) {
        mine = take_ring();
        my_generation = now;
    }
    if (!mine) return;
    int64_t n = atomic_load_explicit(&mine->n, memory_order_relaxed);
    mine->event[n % N_EVENTS] = *event;
    atomic_store_explicit(&mine->n, n + 1, memory_order_release);
}

void stk_trace_start(void)
{
    for (int i = 0; i < MOST_RINGS; i++)
        atomic_store(&rings[i].n, 0);
    atomic_store(&n_rings, 0);
    atomic_fetch_add(&generation, 1);
    atomic_store(&stk_trace_is_on, true);
}

void stk_trace_stop(void)
{
    atomic_store(&stk_trace_is_on, false);
}

static int count_rings(void)
{
    int n = atomic_load(&n_rings);
    return n < MOST_RINGS ? n : MOST_RINGS;
}

bool stk_trace_get_track(int i, stk_trace_track *out)
{
    memset(out, 0, sizeof(*out));
    if (i >= count_rings()) return false;
    const ring *r = &rings[i];
    int64_t n = atomic_load_explicit(&r->n, memory_order_acquire);
    if (n == 0) return true; /* It got no memory. */
    out->n = n < N_EVENTS ? n : N_EVENTS - 1;
    out->n_lost = n - out->n;
    out->thread_id = r->thread_id;
    memcpy(out->thread, r->thread, sizeof(out->thread));
    return true;
}

stk_trace_event stk_trace_get_event(int i, int64_t k)
{
    stk_trace_track track;
    stk_trace_get_track(i, &track);
    return rings[i].event[(track.n_lost + k) % N_EVENTS];
}

/* How long a word takes from one of the device's threads to another and back: what they wait for each other at each
 * kernel, some times over. It depends on the cores that they run on, which a virtual machine does not tell. For the
 * programs of bench/. */
#ifndef STK_BENCH_ROUND_TRIP_H
#define STK_BENCH_ROUND_TRIP_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "device/cpu/threads/numa.h"

typedef struct round_trip {
    _Alignas(64) _Atomic uint32_t word; /* odd: on its way to the other thread; even: back; 0: at the end */
    _Alignas(64) const stk_numa *numa;
} round_trip;

#if defined(__x86_64__)
#define SPIN() __builtin_ia32_pause()
#else
#define SPIN() ((void)0)
#endif

/* As the device's threads spin between kernels; but where both are on one core, the other must have its turn. */
static uint32_t wait_for_change(round_trip *r, uint32_t from)
{
    uint32_t word;
    for (int i = 1; (word = atomic_load_explicit(&r->word, memory_order_acquire)) == from; i++) {
        SPIN();
        if (i % 4096 == 0) sched_yield();
    }
    return word;
}

static void send_back(void *arg)
{
    round_trip *r = arg;
    stk_numa_bind_thread(r->numa, 1);
    for (uint32_t word = 2; (word = wait_for_change(r, word)) != 0; word++)
        atomic_store_explicit(&r->word, word + 1, memory_order_release);
}

static int compare_trips(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* In ns, the median of many; 0 where there is no second thread. The other one is kept on the node of memory that the
 * device keeps its helper on, where it does; the calling one is free, as it is there. */
static double measure_round_trip(int n_threads)
{
    enum { MOST = 2048, TRIPS = 32, MOST_NS = 200000000 };
    static double took[MOST];
    static round_trip r;
    stk_numa numa;
    stk_thread thread = {0};
    int n = 0;
    if (n_threads < 2) return 0;
    stk_numa_plan_here(n_threads, &numa);
    r.numa = &numa;
    uint32_t word = 2;
    atomic_store(&r.word, word);
    if (stk_thread_start(&thread, "bench-trip", false, send_back, &r) != STK_OK) return 0;
    for (int64_t begin = stk_clock_ns(), start = begin; n < MOST && start - begin < MOST_NS; n++) {
        for (int i = 0; i < TRIPS; i++, word += 2) {
            atomic_store_explicit(&r.word, word + 1, memory_order_release);
            wait_for_change(&r, word + 1);
        }
        int64_t end = stk_clock_ns();
        took[n] = (double)(end - start) / TRIPS;
        start = end;
    }
    atomic_store(&r.word, 0);
    stk_thread_join(&thread);
    qsort(took, (size_t)n, sizeof(took[0]), compare_trips);
    return took[n / 2];
}

#endif

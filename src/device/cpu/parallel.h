/* The device's threads: the only user of OpenMP here, so that a build without it works with one thread.
 *
 * Work is cut by thread number, so that the same thread count gives the same bits. A region costs about 2 us: kernels
 * stay serial below some tens of thousands of elements.
 */
#ifndef STK_DEVICE_CPU_PARALLEL_H
#define STK_DEVICE_CPU_PARALLEL_H

#include <stdint.h>

/* What one of n_threads threads does of a task. */
typedef void (*stk_cpu_body)(const void *task, int i_thread, int n_threads);

/* Runs body on up to n_threads threads, the caller one of them, and waits. */
void stk_cpu_parallel(int n_threads, stk_cpu_body body, const void *task);
/* Inside a body: waits for the other threads. n_threads as the body got it. */
void stk_cpu_barrier(int n_threads);

/* Sets how many threads oneDNN uses when it is called by this thread; returns the number before, to be restored. */
int stk_cpu_swap_thread_count(int n_threads);
/* OMP_NUM_THREADS where that is set, else the cores that this process may use. */
int stk_cpu_default_threads(void);

/* The part [begin, end) of n items for one thread, cut at multiples of grain. */
static inline void stk_cpu_share(int64_t n, int64_t grain, int i_thread, int n_threads, int64_t *begin, int64_t *end)
{
    int64_t n_grains = (n + grain - 1) / grain;
    *begin = n_grains * i_thread / n_threads * grain;
    *end = n_grains * (i_thread + 1) / n_threads * grain;
    if (*begin > n) *begin = n;
    if (*end > n) *end = n;
}

/* n_threads where `work`, in elements read or written, is worth a parallel region, else 1. */
static inline int stk_cpu_threads_for(double work, int n_threads)
{
    return work < 32768 ? 1 : n_threads;
}

#endif

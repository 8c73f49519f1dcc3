#include "device/cpu/parallel.h"

#include <stdlib.h>

#include "base/thread.h"

#ifdef _OPENMP
#include <omp.h>

void stk_cpu_parallel(int n_threads, stk_cpu_body body, const void *task)
{
    if (n_threads <= 1) {
        body(task, 0, 1);
        return;
    }
    /* The team may be smaller than asked for, for instance inside a region of the caller. */
#pragma omp parallel num_threads(n_threads)
    body(task, omp_get_thread_num(), omp_get_num_threads());
}

void stk_cpu_barrier(int n_threads)
{
    /* Alone, a barrier would bind to a region of the caller. */
    if (n_threads <= 1) return;
#pragma omp barrier
}

int stk_cpu_swap_thread_count(int n_threads)
{
    int before = omp_get_max_threads();
    if (before != n_threads) omp_set_num_threads(n_threads);
    return before;
}

int stk_cpu_default_threads(void)
{
    return getenv("OMP_NUM_THREADS") ? omp_get_max_threads() : stk_n_cores();
}

#else

void stk_cpu_parallel(int n_threads, stk_cpu_body body, const void *task)
{
    (void)n_threads;
    body(task, 0, 1);
}

void stk_cpu_barrier(int n_threads)
{
    (void)n_threads;
}

int stk_cpu_swap_thread_count(int n_threads)
{
    (void)n_threads;
    return 1;
}

int stk_cpu_default_threads(void)
{
    return 1;
}

#endif

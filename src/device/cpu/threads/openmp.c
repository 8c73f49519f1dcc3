/* OpenMP: the threads that oneDNN brings along, and teams. The only user of it here, so that a build without it works.
 */
#include <stdlib.h>

#include "base/thread.h"
#include "device/cpu/threads/parallel.h"

#ifdef _OPENMP
#include <omp.h>

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

int stk_cpu_swap_thread_count(int n_threads)
{
    (void)n_threads;
    return 1;
}

int stk_cpu_default_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    int n = text ? atoi(text) : 0;
    return n > 0 ? n : stk_n_cores();
}

#endif

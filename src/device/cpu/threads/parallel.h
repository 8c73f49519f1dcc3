/* The device's threads.
 *
 * Work is cut into numbered parts, by the thread count and never by who is free, so that the same count gives the same
 * bits. Where there are no more parts than threads, part i is thread i's, call after call, so that a core finds in its
 * caches what it left there; who takes a part is another matter all the same: what its thread does not come for is
 * claimed by whoever is free, and where there are more parts than threads, all are. A helper that the system has put
 * aside (another process, a data worker, a busy neighbour of a virtual machine) then holds up nobody, as it would in a
 * team with fixed shares. For the same reason a part cannot wait for another part: what needs all of a first pass is a
 * second call. A call costs about 2 us: kernels stay serial below some tens of thousands of elements.
 */
#ifndef STK_DEVICE_CPU_THREADS_PARALLEL_H
#define STK_DEVICE_CPU_THREADS_PARALLEL_H

#include <stdint.h>

#include "device/cpu/threads/numa.h"
#include "stoker/status.h"

/* Part i_part of n_parts of a task. */
typedef void (*stk_cpu_body)(const void *task, int i_part, int n_parts);

enum { STK_CPU_MOST_THREADS = 1024 };

typedef struct stk_cpu_pool stk_cpu_pool;

/* n_threads - 1 helpers next to the caller, on the nodes of numa, which is borrowed; NULL: anywhere. Returned: free
 * with stk_cpu_pool_free. */
stk_status stk_cpu_pool_new(int n_threads, const stk_numa *numa, stk_cpu_pool **out);
void stk_cpu_pool_free(stk_cpu_pool *pool); /* accepts NULL; no call may be running */
/* The helpers of this thread's calls from here on; NULL: none. Returns the one before, to be restored. */
stk_cpu_pool *stk_cpu_pool_enter(stk_cpu_pool *pool);

/* Runs body for all parts, the caller helping, and waits. While another thread uses the pool, the caller does it all.
 */
void stk_cpu_parallel(int n_parts, stk_cpu_body body, const void *task);
/* Within a body: which thread of its pool this is, 0 to n_threads - 1, for memory of its own. */
int stk_cpu_worker(void);

/* Sets how many threads oneDNN uses when it is called by this thread; returns the number before, to be restored. */
int stk_cpu_swap_thread_count(int n_threads);
/* OMP_NUM_THREADS where that is set, else the cores that this process may use. */
int stk_cpu_default_threads(void);

/* The range [begin, end) of n items for one part, cut at multiples of grain. */
static inline void stk_cpu_share(int64_t n, int64_t grain, int i_part, int n_parts, int64_t *begin, int64_t *end)
{
    int64_t n_grains = (n + grain - 1) / grain;
    *begin = n_grains * i_part / n_parts * grain;
    *end = n_grains * (i_part + 1) / n_parts * grain;
    if (*begin > n) *begin = n;
    if (*end > n) *end = n;
}

/* Bytes between what two threads write all the time. A core that walks over rows fetches some of those behind its last
 * one, too, and takes them from the core that works on them. */
enum { STK_CPU_GAP = 128 << 10 };

/* What a thread's block takes that it writes all the time, with what to leave behind it. Where large ones lay side by
 * side, gradients of convolutions' weights took up to 1.5 times as long on Zen 5, as if each core fetched ahead lines
 * that the other one works on; with so much between them it was gone. */
static inline int64_t stk_cpu_apart(int64_t bytes)
{
    return bytes < STK_CPU_GAP ? bytes : bytes + STK_CPU_GAP;
}

/* The same in numbers of f32. */
static inline int64_t stk_cpu_apart_floats(int64_t n)
{
    return stk_cpu_apart(n * (int64_t)sizeof(float)) / (int64_t)sizeof(float);
}

/* n_threads where `work`, in elements read or written, is worth a parallel call, else 1. */
static inline int stk_cpu_threads_for(double work, int n_threads)
{
    return work < 32768 ? 1 : n_threads;
}

#endif

/* Nodes of memory (NUMA): a core reads the memory of its own node faster than that of another one.
 *
 * Where all threads of the device fit on one node, helpers stay on it and memory comes from it. Otherwise helpers are
 * shared out among the nodes by their cores, and memory is interleaved: any part of the arena is used by any thread, so
 * that no node is nearer to it on the whole, but each gives its bandwidth. The thread that calls is never bound: it is
 * the program's. Where a policy for memory is set (numactl), that one stays. Facts are those of
 * /sys/devices/system/node (Documentation/ABI/stable/sysfs-devices-node in Linux), calls mbind(2) and
 * sched_setaffinity(2). On one node nothing is done.
 */
#ifndef STK_DEVICE_CPU_THREADS_NUMA_H
#define STK_DEVICE_CPU_THREADS_NUMA_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { STK_NUMA_MOST_NODES = 64 };

typedef struct stk_numa {
    int n_nodes;                          /* with cores that may be used; 0 or 1: nothing is done */
    int number[STK_NUMA_MOST_NODES];      /* as the system calls them */
    cpu_set_t cores[STK_NUMA_MOST_NODES]; /* of it, that may be used */
    int home;                             /* the node, 0 to n_nodes - 1, that all threads are on; -1: on all */
    int n_threads;
} stk_numa;

/* root: of the tree, "/sys"; allowed: the cores that may be used; core: one on the node that is preferred, -1: any.
 * What cannot be read counts as one node. */
void stk_numa_plan(const char *root, const cpu_set_t *allowed, int core, int n_threads, stk_numa *out);
/* For this process. */
void stk_numa_plan_here(int n_threads, stk_numa *out);

/* The node, 0 to n_nodes - 1, of a thread, 0 to n_threads - 1. */
int stk_numa_node_of(const stk_numa *numa, int i_thread);
/* Keeps the calling thread on its node. Failing does no harm and is not told. */
void stk_numa_bind_thread(const stk_numa *numa, int i_thread);
/* For whole pages that nothing was written to yet. Failing does no harm and is not told. */
void stk_numa_bind_memory(const stk_numa *numa, void *p, size_t bytes);

#endif

/* See numa.h. */
#include "device/cpu/threads/numa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* "0-3,8,10-11" as numbers below CPU_SETSIZE. False: it is not such a list. */
static bool read_list(const char *path, cpu_set_t *out)
{
    char text[4096] = "", *p = text;
    CPU_ZERO(out);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    bool is_read = fgets(text, sizeof(text), f) != NULL;
    fclose(f);
    while (is_read && *p && *p != '\n') {
        char *end;
        long first = strtol(p, &end, 10), last = first;
        if (end == p) return false;
        if (*end == '-') {
            p = end + 1;
            last = strtol(p, &end, 10);
            if (end == p) return false;
        }
        if (first < 0 || last < first) return false;
        for (long i = first; i <= last && i < CPU_SETSIZE; i++)
            CPU_SET((size_t)i, out);
        p = *end == ',' ? end + 1 : end;
        if (*p && *p != '\n' && p == end) return false;
    }
    return is_read;
}

/* The preferred core's node, or else the one with most cores. */
static int find_home(const stk_numa *numa, int core)
{
    int home = -1;
    for (int i = 0; i < numa->n_nodes; i++) {
        int n = CPU_COUNT(&numa->cores[i]);
        if (n < numa->n_threads) continue;
        if (core >= 0 && core < CPU_SETSIZE && CPU_ISSET((size_t)core, &numa->cores[i])) return i;
        if (home < 0 || n > CPU_COUNT(&numa->cores[home])) home = i;
    }
    return home;
}

void stk_numa_plan(const char *root, const cpu_set_t *allowed, int core, int n_threads, stk_numa *out)
{
    char path[512];
    cpu_set_t online;
    *out = (stk_numa){.home = -1, .n_threads = n_threads};
    snprintf(path, sizeof(path), "%s/devices/system/node/online", root);
    if (!read_list(path, &online)) return;
    for (int i = 0; i < CPU_SETSIZE && out->n_nodes < STK_NUMA_MOST_NODES; i++) {
        cpu_set_t *cores = &out->cores[out->n_nodes];
        if (!CPU_ISSET((size_t)i, &online)) continue;
        snprintf(path, sizeof(path), "%s/devices/system/node/node%d/cpulist", root, i);
        if (!read_list(path, cores)) continue;
        CPU_AND(cores, cores, allowed);
        if (CPU_COUNT(cores) == 0) continue; /* memory alone, or not for us */
        out->number[out->n_nodes++] = i;
    }
    out->home = find_home(out, core);
}

void stk_numa_plan_here(int n_threads, stk_numa *out)
{
    cpu_set_t allowed;
    *out = (stk_numa){.home = -1, .n_threads = n_threads};
#ifdef __linux__
    /* A machine with more cores than the set has room for is left as it is. */
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
        stk_numa_plan("/sys", &allowed, sched_getcpu(), n_threads, out);
#else
    (void)allowed;
#endif
}

int stk_numa_node_of(const stk_numa *numa, int i_thread)
{
    int n_cores = 0, before = 0;
    if (numa->home >= 0) return numa->home;
    for (int i = 0; i < numa->n_nodes; i++)
        n_cores += CPU_COUNT(&numa->cores[i]);
    for (int i = 0; i < numa->n_nodes; i++) {
        before += CPU_COUNT(&numa->cores[i]);
        if ((long long)i_thread * n_cores < (long long)before * numa->n_threads) return i;
    }
    return 0;
}

void stk_numa_bind_thread(const stk_numa *numa, int i_thread)
{
    if (numa->n_nodes < 2) return;
    const cpu_set_t *cores = &numa->cores[stk_numa_node_of(numa, i_thread)];
    (void)sched_setaffinity(0, sizeof(*cores), cores);
}

void stk_numa_bind_memory(const stk_numa *numa, void *p, size_t bytes)
{
    if (numa->n_nodes < 2) return;
#ifdef __linux__
    enum { BITS = 8 * sizeof(unsigned long) };
    unsigned long nodes[CPU_SETSIZE / BITS] = {0};
    int mode = MPOL_DEFAULT;
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) != 0 || mode != MPOL_DEFAULT) return;
    for (int i = 0; i < numa->n_nodes; i++)
        if (numa->home < 0 || numa->home == i) nodes[numa->number[i] / BITS] |= 1UL << numa->number[i] % BITS;
    mode = numa->home < 0 ? MPOL_INTERLEAVE : MPOL_PREFERRED;
    (void)syscall(SYS_mbind, p, bytes, mode, nodes, (unsigned long)CPU_SETSIZE, 0UL);
#else
    (void)p;
    (void)bytes;
#endif
}

/* Whether the processors run slower than they could while a run computes, by what the kernel tells under /sys:
 * thermal_throttle (counts of cuts by heat, x86) and cpufreq (docs.kernel.org/admin-guide/pm/cpufreq.html). Virtual
 * machines mostly show neither, and then nothing is told. Threads: one at a time.
 */
#ifndef STK_RUN_THROTTLE_H
#define STK_RUN_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stk_throttle {
    const char *cpus; /* "/sys/devices/system/cpu", or where a test has planted one; borrowed */
    int n_cpus;
    int64_t n_cuts;    /* by heat, as last read; -1: not told */
    int n_hot, n_slow; /* readings in a row */
    bool told;
} stk_throttle;

void stk_throttle_open(stk_throttle *throttle, const char *cpus, int n_cpus);
/* A reading, to be taken about each ten seconds. compute: share of the time that the run computes. True, and text:
 * clocks are held down, which is told once. */
bool stk_throttle_look(stk_throttle *throttle, double compute, char *text, size_t bytes);

#endif

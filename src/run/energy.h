/* The energy that the machine's processors took, where the kernel's powercap interface (RAPL) can be read: often by
 * root only. It is the whole machine's, whoever else computes. Threads: one at a time.
 */
#ifndef STK_RUN_ENERGY_H
#define STK_RUN_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

enum { STK_MOST_PACKAGES = 16 };

typedef struct stk_energy {
    int n; /* packages; 0: none can be read, and `missing` says why */
    char path[STK_MOST_PACKAGES][128];
    int64_t last_uj[STK_MOST_PACKAGES], range_uj[STK_MOST_PACKAGES]; /* counters start again from 0 at range_uj */
    double joules;                                                   /* since open */
    const char *missing;
} stk_energy;

/* Finds what can be read and begins to count. folder: NULL means the kernel's, /sys/class/powercap. */
void stk_energy_open(stk_energy *energy, const char *folder);
/* Adds what has come since the last call. At least once in ten minutes, so that no turn of a counter is missed. */
void stk_energy_count(stk_energy *energy);

#endif

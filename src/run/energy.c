/* See run/energy.h. docs.kernel.org/power/powercap/powercap.html. */
#include "run/energy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -1 where it cannot be read. */
static int64_t read_number(const char *path, const char *name)
{
    char file_path[160], line[40];
    snprintf(file_path, sizeof(file_path), "%s/%s", path, name);
    FILE *file = fopen(file_path, "re");
    if (!file) return -1;
    int64_t n = fgets(line, sizeof(line), file) ? strtoll(line, NULL, 10) : -1;
    fclose(file);
    return n;
}

void stk_energy_open(stk_energy *energy, const char *folder)
{
    if (!folder) folder = "/sys/class/powercap";
    memset(energy, 0, sizeof(*energy));
    energy->missing = "this machine has no RAPL counters under /sys/class/powercap";
    for (int i = 0; i < STK_MOST_PACKAGES; i++) {
        char *path = energy->path[energy->n];
        snprintf(path, sizeof(energy->path[0]), "%s/intel-rapl:%d", folder, i);
        int64_t range = read_number(path, "max_energy_range_uj");
        errno = 0;
        int64_t now = read_number(path, "energy_uj");
        if (now < 0 && errno == EACCES)
            energy->missing =
                "only root may read the RAPL counters: chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj";
        if (now < 0) continue;
        energy->last_uj[energy->n] = now;
        energy->range_uj[energy->n++] = range;
    }
}

void stk_energy_count(stk_energy *energy)
{
    for (int i = 0; i < energy->n; i++) {
        int64_t now = read_number(energy->path[i], "energy_uj");
        if (now < 0) continue;
        int64_t used = now - energy->last_uj[i];
        if (used < 0) used += energy->range_uj[i] > 0 ? energy->range_uj[i] : -used;
        energy->joules += (double)used * 1e-6;
        energy->last_uj[i] = now;
    }
}

/* See run/throttle.h. Heat: the counts of cuts grew twice in a row. Slow: three times in a row, while the run
 * computes, the mean clock was a tenth below the base clock, or, where no base is told, half the highest: all cores at
 * once never reach the highest.
 */
#include "run/throttle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CPUS = 16, HOT_IN_A_ROW = 2, SLOW_IN_A_ROW = 3 };
static const double COMPUTES = 0.5, OF_BASE = 0.9, OF_HIGHEST = 0.5;

/* -1: not told. */
static int64_t read_number(const stk_throttle *t, int cpu, const char *name)
{
    char path[512], line[40];
    int n = snprintf(path, sizeof(path), "%s/cpu%d/%s", t->cpus, cpu, name);
    FILE *file = n < (int)sizeof(path) ? fopen(path, "re") : NULL;
    if (!file) return -1;
    int64_t x = fgets(line, sizeof(line), file) ? strtoll(line, NULL, 10) : -1;
    fclose(file);
    return x;
}

/* The i-th processor that is looked at: reading hundreds takes long. */
static int pick(const stk_throttle *t, int i)
{
    return t->n_cpus <= MOST_CPUS ? i : (int)((int64_t)i * t->n_cpus / MOST_CPUS);
}

static int n_picked(const stk_throttle *t)
{
    return t->n_cpus < MOST_CPUS ? t->n_cpus : MOST_CPUS;
}

static int64_t count_cuts(const stk_throttle *t)
{
    int64_t sum = -1;
    for (int i = 0; i < n_picked(t); i++) {
        int64_t core = read_number(t, pick(t, i), "thermal_throttle/core_throttle_count"),
                package = read_number(t, pick(t, i), "thermal_throttle/package_throttle_count");
        if (core < 0 && package < 0) continue;
        sum = (sum < 0 ? 0 : sum) + (core > 0 ? core : 0) + (package > 0 ? package : 0);
    }
    return sum;
}

typedef struct clocks {
    double mhz, base_mhz, highest_mhz, limit_mhz; /* means over processors */
} clocks;

static bool read_clocks(const stk_throttle *t, clocks *out)
{
    double sum[4] = {0};
    static const char *const names[] = {"cpufreq/scaling_cur_freq", "cpufreq/base_frequency",
                                        "cpufreq/cpuinfo_max_freq", "cpufreq/scaling_max_freq"};
    int n = n_picked(t);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 4; k++) {
            int64_t khz = read_number(t, pick(t, i), names[k]);
            if (khz <= 0 && k != 1) return false;
            sum[k] += khz > 0 ? (double)khz / 1000 / n : 0;
        }
    *out = (clocks){sum[0], sum[1], sum[2], sum[3]};
    return n > 0;
}

static bool is_slow(const clocks *c)
{
    return c->base_mhz > 0 ? c->mhz < OF_BASE * c->base_mhz : c->mhz < OF_HIGHEST * c->highest_mhz;
}

void stk_throttle_open(stk_throttle *throttle, const char *cpus, int n_cpus)
{
    *throttle = (stk_throttle){.cpus = cpus, .n_cpus = n_cpus};
    throttle->n_cuts = count_cuts(throttle);
}

bool stk_throttle_look(stk_throttle *t, double compute, char *text, size_t bytes)
{
    clocks c;
    if (t->told || t->n_cpus < 1) return false;
    int64_t n_cuts = count_cuts(t);
    t->n_hot = n_cuts > t->n_cuts && t->n_cuts >= 0 ? t->n_hot + 1 : 0;
    t->n_cuts = n_cuts;
    bool known = read_clocks(t, &c);
    t->n_slow = known && compute > COMPUTES && is_slow(&c) ? t->n_slow + 1 : 0;
    if (t->n_hot >= HOT_IN_A_ROW) {
        snprintf(
            text, bytes,
            "the processor is too hot and cuts its clock; better cooling (fans, dust, air flow) or fewer 'threads' "
            "help");
    } else if (t->n_slow >= SLOW_IN_A_ROW) {
        bool is_capped = c.limit_mhz < 0.95 * c.highest_mhz;
        snprintf(text, bytes, "clocks are held down: %.0f MHz, of %.0f at best; %s", c.mhz, c.highest_mhz,
                 is_capped
                     ? "a policy caps them: 'powerprofilesctl set performance', or 'cpupower frequency-set -u' with "
                       "the highest"
                     : "heat, a power limit or a low supply may be why: better cooling, mains power, or "
                       "'cpupower frequency-info' shows the governor");
    } else {
        return false;
    }
    t->told = true;
    return true;
}

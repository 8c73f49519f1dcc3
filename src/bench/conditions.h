/* The conditions under which runs are measured: what the machine is, and what it did before, during and after a run.
 * Readings are counters and a probe of the clock; two of them make the conditions of the time between, and those the
 * marks of a run. A mark says that somebody or something else had a part in its time.
 *
 * What is read: /proc/stat, /proc/loadavg, /proc/vmstat, control groups (docs.kernel.org/admin-guide/cgroup-v2.html),
 * cpufreq and thermal_throttle below /sys, and NVIDIA's NVML through watch/driver.h. The probe is a chain of
 * multiplications that wait for each other, whose time tells the core's clock where the kernel does not, as in virtual
 * machines.
 * Threads: one at a time.
 */
#ifndef STK_BENCH_CONDITIONS_H
#define STK_BENCH_CONDITIONS_H

#include <jansson.h>

#include "watch/driver.h"

/* X(name, what a reader is told) */
#define STK_BENCH_MARKS(X)                                                                                             \
    X(neighbour, "other processes computed at the same time")                                                          \
    X(steal, "the host gave this machine's cores to others")                                                           \
    X(quota, "the control group's quota of cores held it up")                                                          \
    X(heat, "the processor was slowed down by heat")                                                                   \
    X(clock, "the processor's clock differed by more than 10 % from the median of all runs")                           \
    X(cold, "it read from disks what other runs found in memory")                                                      \
    X(swap, "the machine swapped")                                                                                     \
    X(gpu_slow, "a GPU's clocks were held down by heat or power")                                                      \
    X(gpu_neighbour, "other processes used a GPU")

enum {
#define X(name, text) STK_BENCH_BIT_##name,
    STK_BENCH_MARKS(X)
#undef X
        STK_BENCH_N_MARKS,
#define X(name, text) STK_BENCH_MARK_##name = 1 << STK_BENCH_BIT_##name,
    STK_BENCH_MARKS(X)
#undef X
};
const char *stk_bench_mark_name(int i);
const char *stk_bench_mark_text(int i);
/* The bit of a mark's name; -1: there is none. */
int stk_bench_mark_find(const char *name);

/* Counters at one moment, since boot; -1: not to be had. */
typedef struct stk_bench_reading {
    int64_t at_ns, busy_ms, steal_ms, own_us, n_throttled, throttled_us, n_heat_cuts, swapped_pages, n_runnable;
    int64_t available_kb;
    double load, mhz;  /* mhz: of the fastest core, by cpufreq */
    double probe_ns;   /* of one multiplication; 0: not probed */
    int64_t gpu_mask;  /* NVML's reasons for low clocks, of all GPUs */
    int64_t gpu_other; /* processes of others on GPUs */
    double gpu_mw, gpu_celsius, gpu_mhz, gpu_mj;
} stk_bench_reading;

/* Between two readings; -1 or NaN where it cannot be told. */
typedef struct stk_bench_during {
    double seconds, neighbour_cores, steal_share;
    int64_t n_throttled, n_heat_cuts, swapped_pages, gpu_mask, gpu_other;
    double throttled_s, probe_ns, mhz, load;
} stk_bench_during;

enum { STK_BENCH_GROUPS = 8 };

typedef struct stk_bench_machine {
    stk_watch_root root;
    stk_watch_driver *driver;
    stk_watch_facts facts;
    stk_watch_sample sample;                          /* for GPUs */
    char groups[1024], group[STK_BENCH_GROUPS][1024]; /* folders with a quota of cores that hold for the runs */
    bool group_is_v1[STK_BENCH_GROUPS], has_groups;
    int64_t group_throttled[STK_BENCH_GROUPS], group_throttled_us[STK_BENCH_GROUPS]; /* as read last */
    int64_t n_throttled, throttled_us; /* of all groups that runs were in, while they were */
    int n_groups, n_cores;
    int64_t gpu_mask, gpu_other; /* seen since the last full reading, by looks at a run */
    char *text;
} stk_bench_machine;

/* nvml: the library; NULL: the driver's. root's texts are borrowed. */
stk_status stk_bench_machine_open(stk_bench_machine *m, const char *nvml, const stk_watch_root *root);
void stk_bench_machine_close(stk_bench_machine *m);
/* What does not change: processor, cores, limits, governor, huge pages, versions, GPUs. Returned: json_decref. Where a
 * thing cannot be read its value is null. */
json_t *stk_bench_machine_json(const stk_bench_machine *m);
/* What the fastest link of a GPU here carries to or from its host, in GB/s of 10^9 bytes; 0: there is no GPU, or its
 * link is not known. */
double stk_bench_link_gb_s(const stk_bench_machine *m);

/* with_probe: half a millisecond of a core's time. */
stk_status stk_bench_read(stk_bench_machine *m, bool with_probe, stk_bench_reading *out);
/* A look in the middle of a run: GPUs, and the control group that the run's process is in by then. */
stk_status stk_bench_look(stk_bench_machine *m, int64_t pid);
json_t *stk_bench_reading_json(const stk_bench_reading *reading);

void stk_bench_between(const stk_bench_reading *before, const stk_bench_reading *after, int n_cores,
                       stk_bench_during *out);
/* The marks that follow from it alone; `clock` and `cold` take the other runs. */
unsigned stk_bench_judge(const stk_bench_during *during);
json_t *stk_bench_during_json(const stk_bench_during *during);
json_t *stk_bench_marks_json(unsigned marks);

#endif

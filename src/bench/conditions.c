#include "bench/conditions.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/error.h"
#include "watch/nvml.h"
#include "watch/parse.h"

enum { TEXT_BYTES = 65536, PROBE_STEPS = 60000, PROBES = 5 };

static const char *const mark_names[] = {
#define X(name, text) #name,
    STK_BENCH_MARKS(X)
#undef X
};
static const char *const mark_texts[] = {
#define X(name, text) text,
    STK_BENCH_MARKS(X)
#undef X
};

const char *stk_bench_mark_name(int i)
{
    return mark_names[i];
}

const char *stk_bench_mark_text(int i)
{
    return mark_texts[i];
}

int stk_bench_mark_find(const char *name)
{
    for (int i = 0; i < STK_BENCH_N_MARKS; i++)
        if (!strcmp(mark_names[i], name)) return i;
    return -1;
}

json_t *stk_bench_marks_json(unsigned marks)
{
    json_t *list = json_array();
    for (int i = 0; i < STK_BENCH_N_MARKS; i++)
        if (marks >> i & 1) json_array_append_new(list, json_string(mark_names[i]));
    return list;
}

/* --- control groups --- */

static void visit_group(void *user, const char *folder, bool is_v1)
{
    stk_bench_machine *m = user;
    char text[64];
    if (m->n_groups == STK_BENCH_GROUPS || strlen(folder) >= 500) return;
    if (!stk_watch_read(&m->root, text, sizeof(text), is_v1 ? "%s/cpu.cfs_quota_us" : "%s/cpu.max", folder)) return;
    if (stk_watch_parse_number(text) <= 0) return; /* "max", or -1 */
    snprintf(m->group[m->n_groups], sizeof(m->group[0]), "%s", folder);
    m->group_is_v1[m->n_groups++] = is_v1;
}

/* Adds what the groups' counts have grown by since they were read last; with is_new they begin from here. */
static void count_groups(stk_bench_machine *m, bool is_new)
{
    char text[1024];
    for (int i = 0; i < m->n_groups; i++) {
        if (!stk_watch_read(&m->root, text, sizeof(text), "%.480s/cpu.stat", m->group[i])) continue;
        int64_t n = stk_watch_parse_key(text, "nr_throttled");
        int64_t us = m->group_is_v1[i] ? stk_watch_parse_key(text, "throttled_time") / 1000
                                       : stk_watch_parse_key(text, "throttled_usec");
        if (!is_new && n > m->group_throttled[i]) m->n_throttled += n - m->group_throttled[i];
        if (!is_new && us > m->group_throttled_us[i]) m->throttled_us += us - m->group_throttled_us[i];
        m->group_throttled[i] = n;
        m->group_throttled_us[i] = us;
    }
}

/* Those of a process, where they are others than were read last. */
static void find_groups(stk_bench_machine *m, int64_t pid)
{
    char groups[sizeof(m->groups)];
    if (!stk_watch_read(&m->root, groups, sizeof(groups), "/proc/%" PRId64 "/cgroup", pid)) return;
    if (!strcmp(groups, m->groups)) return;
    memcpy(m->groups, groups, sizeof(groups));
    m->n_groups = 0;
    stk_cgroup_visit(groups, "/sys/fs/cgroup", "cpu", visit_group, m);
    if (strstr(groups, "0::")) stk_cgroup_visit(groups, "/sys/fs/cgroup/unified", "cpu", visit_group, m);
    m->has_groups |= m->n_groups > 0;
    count_groups(m, true);
}

/* --- readings --- */

static int64_t read_number(const stk_bench_machine *m, const char *path)
{
    char text[64];
    return stk_watch_read(&m->root, text, sizeof(text), "%s", path) ? stk_watch_parse_number(text) : -1;
}

static void read_clocks(stk_bench_machine *m, stk_bench_reading *r)
{
    char path[128];
    for (int i = 0; i < m->n_cores; i++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", i);
        double mhz = (double)read_number(m, path) / 1000;
        if (mhz > r->mhz) r->mhz = mhz;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", i);
        int64_t n = read_number(m, path);
        if (n >= 0) r->n_heat_cuts = (r->n_heat_cuts < 0 ? 0 : r->n_heat_cuts) + n;
    }
}

/* The barrier keeps the compiler from joining two of them. */
#define MULTIPLY(x)                                                                                                    \
    __asm__ volatile("" : "+r"(x));                                                                                    \
    (x) *= 0x9E3779B97F4A7C15u

/* The least of several, so that an interruption does not count. */
static double probe(void)
{
    double best = 0;
    for (int k = 0; k < PROBES; k++) {
        uint64_t x = (uint64_t)k + 1;
        int64_t begin = stk_clock_ns();
        for (int i = 0; i < PROBE_STEPS; i += 4) {
            MULTIPLY(x);
            MULTIPLY(x);
            MULTIPLY(x);
            MULTIPLY(x);
        }
        double ns = (double)(stk_clock_ns() - begin) / PROBE_STEPS;
        __asm__ volatile("" : : "r"(x));
        if (k == 0 || ns < best) best = ns;
    }
    return best;
}

static int64_t own_us(void)
{
    int64_t us = 0;
    static const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        if (getrusage(who[i], &usage) != 0) continue;
        us += ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
              usage.ru_stime.tv_usec;
    }
    return us;
}

/* Reasons that say that the chip could go faster; not idleness, nor clocks that its owner has set. */
static const int64_t slow_mask = NVML_SLOW_POWER_CAP | NVML_SLOW_HARDWARE | NVML_SLOW_HEAT_SOFTWARE |
                                 NVML_SLOW_HEAT_HARDWARE | NVML_SLOW_POWER_BRAKE;

static stk_status read_gpus(stk_bench_machine *m, stk_bench_reading *r)
{
    STK_RETURN_IF_ERROR(stk_watch_driver_read(m->driver, true, &m->sample, &m->facts));
    for (size_t i = 0; i < m->sample.gpus.n; i++) {
        const stk_watch_gpu *gpu = stk_watch_gpu_at(&m->sample, i);
        if (gpu->slowdown_mask > 0) m->gpu_mask |= gpu->slowdown_mask & slow_mask;
        if (gpu->n_other > m->gpu_other) m->gpu_other = gpu->n_other;
        if (!r) continue;
        if (gpu->power_mw >= 0) r->gpu_mw = (isnan(r->gpu_mw) ? 0 : r->gpu_mw) + (double)gpu->power_mw;
        if (gpu->energy_mj >= 0) r->gpu_mj = (isnan(r->gpu_mj) ? 0 : r->gpu_mj) + (double)gpu->energy_mj;
        if (gpu->celsius >= 0) r->gpu_celsius = fmax(r->gpu_celsius, (double)gpu->celsius);
        if (gpu->clock_mhz >= 0) r->gpu_mhz = fmax(r->gpu_mhz, (double)gpu->clock_mhz);
    }
    return STK_OK;
}

stk_status stk_bench_read(stk_bench_machine *m, bool with_probe, stk_bench_reading *out)
{
    stk_watch_cpu_times times;
    int64_t tick_ms = 1000 / sysconf(_SC_CLK_TCK);
    memset(out, 0xff, sizeof(*out)); /* -1 in all counters */
    out->load = out->mhz = out->gpu_mw = out->gpu_celsius = out->gpu_mhz = out->gpu_mj = NAN;
    out->probe_ns = with_probe ? probe() : 0;
    out->mhz = -1;
    STK_RETURN_IF_ERROR(read_gpus(m, out));
    out->gpu_mask = m->sample.gpus.n ? m->gpu_mask : -1;
    out->gpu_other = m->sample.gpus.n ? m->gpu_other : -1;
    m->gpu_mask = m->gpu_other = 0;
    count_groups(m, false);
    if (m->has_groups) {
        out->n_throttled = m->n_throttled;
        out->throttled_us = m->throttled_us;
    }
    find_groups(m, getpid());
    read_clocks(m, out);
    if (stk_watch_read(&m->root, m->text, TEXT_BYTES, "/proc/loadavg")) out->load = strtod(m->text, NULL);
    if (stk_watch_read(&m->root, m->text, TEXT_BYTES, "/proc/meminfo"))
        out->available_kb = stk_watch_parse_key(m->text, "MemAvailable");
    if (stk_watch_read(&m->root, m->text, TEXT_BYTES, "/proc/vmstat")) {
        int64_t in = stk_watch_parse_key(m->text, "pswpin"), gone = stk_watch_parse_key(m->text, "pswpout");
        if (in >= 0 && gone >= 0) out->swapped_pages = in + gone;
    }
    if (stk_watch_read(&m->root, m->text, TEXT_BYTES, "/proc/stat") && stk_watch_parse_cpu_times(m->text, &times)) {
        out->busy_ms = times.busy * tick_ms;
        out->steal_ms = times.steal * tick_ms;
        out->n_runnable = times.n_runnable;
    }
    out->own_us = own_us();
    out->at_ns = stk_clock_ns();
    return STK_OK;
}

/* The command and all that it has started, which are in this process's group: they are ours on a GPU. */
static stk_status find_own(stk_bench_machine *m, int64_t pid)
{
    while (m->sample.processes.n)
        stk_watch_list_remove(&m->sample.processes, stk_watch_process_at(&m->sample, 0)->id);
    bool added = stk_watch_list_add(&m->sample.processes, pid) != NULL;
    DIR *dir = opendir("/proc");
    pid_t group = getpgrp();
    for (struct dirent *entry; added && dir && (entry = readdir(dir));) {
        long other = strtol(entry->d_name, NULL, 10);
        if (other > 0 && other != pid && getpgid((pid_t)other) == group)
            added = stk_watch_list_add(&m->sample.processes, other) != NULL;
    }
    if (dir) closedir(dir);
    return added ? STK_OK : stk_fail_memory(sizeof(stk_watch_process));
}

stk_status stk_bench_look(stk_bench_machine *m, int64_t pid)
{
    count_groups(m, false);
    find_groups(m, pid);
    if (!m->sample.gpus.n) return STK_OK;
    STK_RETURN_IF_ERROR(find_own(m, pid));
    return read_gpus(m, NULL);
}

static void put_number(json_t *object, const char *name, double x, bool is_known)
{
    json_object_set_new(object, name, is_known && isfinite(x) ? json_real(x) : json_null());
}

static void put_count(json_t *object, const char *name, int64_t n)
{
    json_object_set_new(object, name, n >= 0 ? json_integer(n) : json_null());
}

json_t *stk_bench_reading_json(const stk_bench_reading *r)
{
    json_t *object = json_object();
    put_number(object, "load_average", r->load, true);
    put_count(object, "runnable_threads", r->n_runnable);
    put_count(object, "available_memory_kib", r->available_kb);
    put_number(object, "clock_mhz", r->mhz, r->mhz > 0);
    put_number(object, "probe_ns", r->probe_ns, r->probe_ns > 0);
    put_count(object, "gpu_slowdown_mask", r->gpu_mask);
    put_count(object, "gpu_other_processes", r->gpu_other);
    put_number(object, "gpu_power_w", r->gpu_mw / 1000, true);
    put_number(object, "gpu_celsius", r->gpu_celsius, true);
    put_number(object, "gpu_clock_mhz", r->gpu_mhz, true);
    return object;
}

/* --- what lies between two --- */

static int64_t grown(int64_t before, int64_t after)
{
    return before < 0 || after < before ? -1 : after - before;
}

void stk_bench_between(const stk_bench_reading *before, const stk_bench_reading *after, int n_cores,
                       stk_bench_during *out)
{
    int64_t busy = grown(before->busy_ms, after->busy_ms), steal = grown(before->steal_ms, after->steal_ms);
    out->seconds = (double)(after->at_ns - before->at_ns) * 1e-9;
    double own_ms = (double)grown(before->own_us, after->own_us) / 1000, ms = out->seconds * 1000;
    out->neighbour_cores = busy >= 0 && ms > 0 ? fmax(0, ((double)busy - own_ms) / ms) : NAN;
    out->steal_share = steal >= 0 && ms > 0 ? (double)steal / (ms * (n_cores > 0 ? n_cores : 1)) : NAN;
    /* A group that a run moved into is known from then on. */
    bool has_groups = after->n_throttled >= 0;
    out->n_throttled = has_groups ? after->n_throttled - (before->n_throttled < 0 ? 0 : before->n_throttled) : -1;
    out->throttled_s =
        has_groups ? (double)(after->throttled_us - (before->throttled_us < 0 ? 0 : before->throttled_us)) * 1e-6 : NAN;
    out->n_heat_cuts = grown(before->n_heat_cuts, after->n_heat_cuts);
    out->swapped_pages = grown(before->swapped_pages, after->swapped_pages);
    out->gpu_mask = after->gpu_mask;
    out->gpu_other = after->gpu_other;
    /* The slower of both: a clock that changed within the run shows at its end. */
    out->probe_ns = before->probe_ns > 0 && after->probe_ns > 0 ? fmax(before->probe_ns, after->probe_ns) : NAN;
    out->mhz = after->mhz;
    out->load = after->load;
}

unsigned stk_bench_judge(const stk_bench_during *d)
{
    /* Counts of the kernel are in ticks of 10 ms: three of them are not seen yet. */
    enum { TICKS_MS = 30, PAGES = 16 };
    unsigned marks = 0;
    double ms = d->seconds * 1000;
    if (d->neighbour_cores > 0.1 && d->neighbour_cores * ms > TICKS_MS) marks |= STK_BENCH_MARK_neighbour;
    if (d->steal_share > 0.01 && d->steal_share * ms > TICKS_MS) marks |= STK_BENCH_MARK_steal;
    if (d->n_throttled > 0) marks |= STK_BENCH_MARK_quota;
    if (d->n_heat_cuts > 0) marks |= STK_BENCH_MARK_heat;
    if (d->swapped_pages > PAGES) marks |= STK_BENCH_MARK_swap;
    if (d->gpu_mask > 0) marks |= STK_BENCH_MARK_gpu_slow;
    if (d->gpu_other > 0) marks |= STK_BENCH_MARK_gpu_neighbour;
    return marks;
}

json_t *stk_bench_during_json(const stk_bench_during *d)
{
    json_t *object = json_object();
    put_number(object, "neighbour_cores", d->neighbour_cores, true);
    put_number(object, "steal_share", d->steal_share, true);
    put_count(object, "throttled_periods", d->n_throttled);
    put_number(object, "throttled_s", d->throttled_s, true);
    put_count(object, "heat_cuts", d->n_heat_cuts);
    put_count(object, "swapped_pages", d->swapped_pages);
    put_number(object, "probe_ns", d->probe_ns, true);
    put_number(object, "clock_mhz", d->mhz, d->mhz > 0);
    put_number(object, "load_average", d->load, true);
    put_count(object, "gpu_slowdown_mask", d->gpu_mask);
    put_count(object, "gpu_other_processes", d->gpu_other);
    return object;
}

stk_status stk_bench_machine_open(stk_bench_machine *m, const char *nvml, const stk_watch_root *root)
{
    memset(m, 0, sizeof(*m));
    m->root = *root;
    m->n_cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    stk_watch_sample_init(&m->sample);
    m->text = malloc(TEXT_BYTES);
    if (!m->text) return stk_fail_memory(TEXT_BYTES);
    STK_RETURN_IF_ERROR(stk_watch_driver_open(&m->driver, nvml, &m->root, &m->facts));
    find_groups(m, getpid());
    return STK_OK;
}

void stk_bench_machine_close(stk_bench_machine *m)
{
    stk_watch_driver_close(m->driver);
    stk_watch_sample_free(&m->sample);
    stk_watch_facts_free(&m->facts);
    free(m->text);
    memset(m, 0, sizeof(*m));
}

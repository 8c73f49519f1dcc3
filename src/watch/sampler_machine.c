/* Counters of the machine, and of the control group that the job's busiest process is in. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "watch/parse.h"
#include "watch/sampler.h"

enum { GROUP_US = 10000000 };

static void miss(stk_watch_sampler *sampler, const char *text)
{
    (void)stk_watch_facts_add(&sampler->facts, "missing", "%s", text);
}

void stk_watch_read_cores(stk_watch_sampler *sampler)
{
    stk_watch_cpu_times times;
    stk_watch_machine *m = &sampler->sample.machine;
    int64_t tick_ms = 1000 / sysconf(_SC_CLK_TCK);
    sampler->n_forks = -1;
    if (!stk_watch_read(&sampler->config.root, sampler->text, STK_WATCH_TEXT, "/proc/stat") ||
        !stk_watch_parse_cpu_times(sampler->text, &times)) {
        miss(sampler, "load of all cores (/proc/stat)");
        m->n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
        return;
    }
    sampler->n_forks = times.n_forks;
    m->n_cpus = times.n_cpus;
    m->busy_ms = times.busy * tick_ms;
    m->iowait_ms = times.iowait * tick_ms;
    m->steal_ms = times.steal * tick_ms;
    m->n_runnable = times.n_runnable;
}

static void read_pressure(stk_watch_sampler *sampler)
{
    static const char *const names[] = {"cpu", "io", "memory"};
    stk_watch_machine *m = &sampler->sample.machine;
    int64_t *into[] = {&m->psi_cpu_us, &m->psi_io_us, &m->psi_memory_us};
    char text[512];
    for (int i = 0; i < 3; i++) {
        *into[i] = -1;
        if (stk_watch_read_kept(&sampler->keeper, STK_WATCH_FILE_PRESSURE + i, text, sizeof(text), "/proc/pressure/%s",
                                names[i]))
            *into[i] = stk_watch_parse_pressure(text, "some");
        if (*into[i] < 0) miss(sampler, "PSI (/proc/pressure: a kernel with CONFIG_PSI=y, or started with psi=1)");
    }
}

static void read_memory(stk_watch_sampler *sampler)
{
    stk_watch_machine *m = &sampler->sample.machine;
    char *text = sampler->text;
    if (stk_watch_read(&sampler->config.root, text, STK_WATCH_TEXT, "/proc/meminfo")) {
        m->memory_kb = stk_watch_parse_key(text, "MemTotal");
        m->available_kb = stk_watch_parse_key(text, "MemAvailable");
        m->cached_kb = stk_watch_parse_key(text, "Cached");
        m->swap_kb = stk_watch_parse_key(text, "SwapTotal");
        m->swap_free_kb = stk_watch_parse_key(text, "SwapFree");
    } else {
        miss(sampler, "memory of the machine (/proc/meminfo)");
    }
    if (stk_watch_read(&sampler->config.root, text, STK_WATCH_TEXT, "/proc/vmstat")) {
        m->swapped_in_pages = stk_watch_parse_key(text, "pswpin");
        m->swapped_out_pages = stk_watch_parse_key(text, "pswpout");
        m->oom_kills = stk_watch_parse_key(text, "oom_kill");
        m->huge_faults = stk_watch_parse_key(text, "thp_fault_alloc");
        m->refaults = stk_watch_parse_key(text, "workingset_refault_file");
    } else {
        miss(sampler, "swapping and the kills of the machine for want of memory (/proc/vmstat)");
    }
}

static void read_traffic(stk_watch_sampler *sampler)
{
    stk_watch_machine *m = &sampler->sample.machine;
    stk_watch_disks disks;
    int64_t received, sent;
    if (stk_watch_read(&sampler->config.root, sampler->text, STK_WATCH_TEXT, "/proc/diskstats") &&
        stk_watch_parse_disks(sampler->text, &disks)) {
        m->disk_read_kb = disks.read_sectors / 2;
        m->disk_written_kb = disks.written_sectors / 2;
        m->disk_busy_ms = disks.busy_ms;
    } else {
        miss(sampler, "disk traffic (/proc/diskstats)");
    }
    if (stk_watch_read(&sampler->config.root, sampler->text, STK_WATCH_TEXT, "/proc/net/dev") &&
        stk_watch_parse_net(sampler->text, &received, &sent)) {
        m->net_received_kb = received / 1024;
        m->net_sent_kb = sent / 1024;
    } else {
        miss(sampler, "network traffic (/proc/net/dev)");
    }
}

/* --- the control group --- */

typedef struct group_search {
    stk_watch_sampler *sampler;
    int which; /* 0: cores, 1: memory */
    int64_t least;
    bool is_v1, has_any; /* whether any group tells its limit, though it be none */
} group_search;

static int64_t read_number(stk_watch_sampler *sampler, const char *folder, const char *name)
{
    char text[64];
    if (!stk_watch_read(&sampler->config.root, text, sizeof(text), "%.900s/%s", folder, name)) return -1;
    return stk_watch_parse_number(text);
}

static int64_t quota_of(stk_watch_sampler *sampler, const char *folder, bool is_v1)
{
    int64_t quota = read_number(sampler, folder, is_v1 ? "cpu.cfs_quota_us" : "cpu.max"), period = -1;
    char text[64];
    if (is_v1)
        period = read_number(sampler, folder, "cpu.cfs_period_us");
    else if (stk_watch_read(&sampler->config.root, text, sizeof(text), "%.900s/cpu.max", folder))
        period = stk_watch_parse_number(text + strcspn(text, " \n"));
    return quota > 0 && period > 0 && quota < INT64_MAX / 2000 ? quota * 1000 / period : -1;
}

/* Remembers the folder with the least limit. */
static void visit_group(void *user, const char *folder, bool is_v1)
{
    static const char *const files[2][2] = {{"cpu.max", "cpu.cfs_quota_us"}, {"memory.max", "memory.limit_in_bytes"}};
    group_search *search = user;
    const char *name = files[search->which][is_v1];
    char text[64];
    if (!stk_watch_read(&search->sampler->config.root, text, sizeof(text), "%.900s/%s", folder, name)) return;
    search->has_any = true;
    int64_t value = search->which == 0 ? quota_of(search->sampler, folder, is_v1) : stk_watch_parse_number(text);
    if (value < 0 || value >= search->least) return;
    search->least = value;
    search->is_v1 = is_v1;
    snprintf(search->sampler->group_folder[search->which], sizeof(search->sampler->group_folder[0]), "%c%.1000s",
             is_v1 ? '1' : '2', folder);
}

/* The busiest process's group; most jobs lie in one. */
static void find_group(stk_watch_sampler *sampler)
{
    int64_t id = 0, most = -1;
    char groups[sizeof(sampler->groups)];
    for (size_t i = 0; i < sampler->sample.processes.n; i++) {
        const stk_watch_process *process = stk_watch_process_at(&sampler->sample, i);
        if (process->cpu_us <= most) continue;
        most = process->cpu_us;
        id = process->id;
    }
    if (id == 0) return;
    if (!stk_watch_read(&sampler->config.root, groups, sizeof(groups), "/proc/%" PRId64 "/cgroup", id)) {
        miss(sampler, "limits of the control group (/proc/PID/cgroup and /sys/fs/cgroup)");
        return;
    }
    /* Groups around it may get other limits, which is rare. */
    if (!strcmp(groups, sampler->groups) && sampler->sample.time_us - sampler->group_us < GROUP_US) return;
    memcpy(sampler->groups, groups, sizeof(groups));
    sampler->group_us = sampler->sample.time_us;
    for (int i = 0; i < 2; i++) {
        group_search search = {sampler, i, INT64_MAX, false, false};
        sampler->group_folder[i][0] = 0;
        stk_cgroup_visit(groups, "/sys/fs/cgroup", i == 0 ? "cpu" : "memory", visit_group, &search);
        /* Where version 1 is mounted, version 2 lies next to it. */
        if (strstr(groups, "0::"))
            stk_cgroup_visit(groups, "/sys/fs/cgroup/unified", i == 0 ? "cpu" : "memory", visit_group, &search);
        if (!search.has_any)
            miss(sampler, i == 0
                              ? "the control group's quota of cores (cpu.max or cpu.cfs_quota_us below /sys/fs/cgroup)"
                              : "the control group's limit of memory (memory.max or memory.limit_in_bytes below "
                                "/sys/fs/cgroup)");
    }
}

static void read_quota(stk_watch_sampler *sampler, const char *folder, bool is_v1)
{
    stk_watch_machine *m = &sampler->sample.machine;
    char text[1024];
    m->quota_millicores = quota_of(sampler, folder, is_v1);
    if (!stk_watch_read(&sampler->config.root, text, sizeof(text), "%.900s/cpu.stat", folder)) {
        miss(sampler, "throttling by the control group (cpu.stat)");
        return;
    }
    m->n_periods = stk_watch_parse_key(text, "nr_periods");
    m->n_throttled = stk_watch_parse_key(text, "nr_throttled");
    m->throttled_us =
        is_v1 ? stk_watch_parse_key(text, "throttled_time") / 1000 : stk_watch_parse_key(text, "throttled_usec");
}

static void read_limit(stk_watch_sampler *sampler, const char *folder, bool is_v1)
{
    stk_watch_machine *m = &sampler->sample.machine;
    char text[1024];
    int64_t limit = read_number(sampler, folder, is_v1 ? "memory.limit_in_bytes" : "memory.max");
    int64_t used = read_number(sampler, folder, is_v1 ? "memory.usage_in_bytes" : "memory.current");
    /* Cached files count, but are given up when memory is wanted. */
    if (used > 0 &&
        stk_watch_read(&sampler->config.root, sampler->text, STK_WATCH_TEXT, "%.900s/memory.stat", folder)) {
        int64_t cached = stk_watch_parse_key(sampler->text, is_v1 ? "total_cache" : "file");
        if (cached > 0 && cached < used) used -= cached;
    }
    m->limit_kb = limit > 0 ? limit / 1024 : -1;
    m->used_kb = used > 0 ? used / 1024 : -1;
    m->n_limit_hits = is_v1 ? read_number(sampler, folder, "memory.failcnt") : -1;
    if (stk_watch_read(&sampler->config.root, text, sizeof(text), "%.900s/%s", folder,
                       is_v1 ? "memory.oom_control" : "memory.events")) {
        m->group_oom_kills = stk_watch_parse_key(text, "oom_kill");
        if (!is_v1) m->n_limit_hits = stk_watch_parse_key(text, "max");
    }
}

static void read_group(stk_watch_sampler *sampler)
{
    const char *cores = sampler->group_folder[0], *memory = sampler->group_folder[1];
    if (cores[0]) read_quota(sampler, cores + 1, cores[0] == '1');
    if (memory[0]) read_limit(sampler, memory + 1, memory[0] == '1');
}

void stk_watch_read_machine(stk_watch_sampler *sampler)
{
    read_pressure(sampler);
    read_memory(sampler);
    read_traffic(sampler);
    find_group(sampler);
    read_group(sampler);
}

void stk_watch_read_kills(stk_watch_sampler *sampler)
{
    read_memory(sampler);
    read_group(sampler);
}

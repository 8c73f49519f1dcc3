/* What a machine is, for bench/conditions.h: what does not change from run to run. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/processor.h"
#include "bench/conditions.h"
#include "stoker/graph/device.h"
#include "watch/parse.h"

enum { LINE = 4096 };

/* The file's first line as a text, or null. */
static json_t *read_line(const stk_bench_machine *m, const char *path)
{
    char text[LINE];
    if (!stk_watch_read(&m->root, text, sizeof(text), "%s", path)) return json_null();
    text[strcspn(text, "\n")] = 0;
    json_t *line = json_string(text);
    return line ? line : json_null();
}

/* Of "always [madvise] never" the word in brackets. */
static json_t *read_choice(const stk_bench_machine *m, const char *path)
{
    char text[256];
    if (!stk_watch_read(&m->root, text, sizeof(text), "%s", path)) return json_null();
    char *open = strchr(text, '['), *end = open ? strchr(open, ']') : NULL;
    if (!end) return json_null();
    *end = 0;
    return json_string(open + 1);
}

static json_t *read_processor(stk_bench_machine *m)
{
    char name[STK_PROCESSOR_NAME];
    if (!stk_watch_read(&m->root, m->text, 65536, "/proc/cpuinfo")) return json_null();
    json_t *text = stk_processor_name_in(m->text, name, sizeof(name)) ? json_string(name) : NULL;
    return text ? text : json_null();
}

static json_t *list_facts(const stk_bench_machine *m, const char *key)
{
    json_t *list = json_array();
    const char *text;
    for (size_t i = 0; (text = stk_watch_facts_get(&m->facts, key, i)); i++)
        json_array_append_new(list, json_string(text));
    return list;
}

static json_t *list_gpus(const stk_bench_machine *m)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->sample.gpus.n; i++) {
        const stk_watch_gpu *gpu = stk_watch_gpu_at(&m->sample, i);
        const char *name = stk_watch_facts_get(&m->facts, "gpu", i);
        json_array_append_new(
            list, json_pack("{s:I, s:s*, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "number", (json_int_t)gpu->id, "about",
                            name, "memory_mb", (json_int_t)gpu->memory_mb, "power_limit_mw",
                            (json_int_t)gpu->power_limit_mw, "highest_clock_mhz", (json_int_t)gpu->clock_most_mhz,
                            "mig", (json_int_t)gpu->mig, "numa_node", (json_int_t)gpu->numa_node, "pcie_generation",
                            (json_int_t)gpu->pcie_generation, "pcie_width", (json_int_t)gpu->pcie_width));
    }
    return list;
}

/* In one direction, of a lane of each generation, without the line code: 2.5, 5, 8, 16, 32 and 64 GT/s (PCI Express
 * Base Specification 6.0). What of that is not data is not taken off. */
static const double lane_gb_s[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 8};

/* Grace's chips reach their GPUs by NVLink-C2C, which NVML's PCIe says nothing of. */
static bool has_another_link(const char *name)
{
    return name && (strstr(name, "GH200") || strstr(name, "GB200") || strstr(name, "GB300") || strstr(name, "GB10"));
}

double stk_bench_link_gb_s(const stk_bench_machine *m)
{
    double most = 0;
    for (size_t i = 0; i < m->sample.gpus.n; i++) {
        const stk_watch_gpu *gpu = stk_watch_gpu_at(&m->sample, i);
        int64_t generation = gpu->pcie_most_generation, width = gpu->pcie_most_width;
        if (has_another_link(stk_watch_facts_get(&m->facts, "gpu", i))) return 0;
        if (generation < 1 || generation >= (int64_t)(sizeof(lane_gb_s) / sizeof(lane_gb_s[0])) || width < 1) return 0;
        double link = lane_gb_s[generation] * (double)width;
        if (link > most) most = link;
    }
    return most;
}

/* What computes on the processor, with its version. Other devices are not asked: that wakes a GPU. */
static json_t *list_libraries(void)
{
    stk_device_info info;
    json_t *list = json_array();
    if (stk_device_get_info(0, &info) == STK_OK)
        json_array_append_new(list, json_sprintf("%s: %s", info.name, info.detail));
    return list;
}

json_t *stk_bench_machine_json(const stk_bench_machine *machine)
{
    stk_bench_machine *m = (stk_bench_machine *)machine; /* its text is scratch */
    struct utsname system;
    cpu_set_t set;
    char groups[1024];
    json_t *object = json_object();
    bool is_named = uname(&system) == 0;
    json_object_set_new(object, "processor", read_processor(m));
    json_object_set_new(object, "architecture", is_named ? json_string(system.machine) : json_null());
    json_object_set_new(object, "cores", json_integer(m->n_cores));
    json_object_set_new(object, "usable_cores",
                        sched_getaffinity(0, sizeof(set), &set) == 0 ? json_integer(CPU_COUNT(&set)) : json_null());
    stk_cgroup_read_groups(groups, sizeof(groups));
    double quota = stk_cgroup_cores(groups, "/sys/fs/cgroup");
    json_object_set_new(object, "quota_cores", quota < 1e6 ? json_real(quota) : json_null());
    int64_t kb =
        stk_watch_read(&m->root, m->text, 65536, "/proc/meminfo") ? stk_watch_parse_key(m->text, "MemTotal") : -1;
    json_object_set_new(object, "memory_kib", kb >= 0 ? json_integer(kb) : json_null());
    json_object_set_new(object, "governor", read_line(m, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    json_object_set_new(object, "turbo_off", read_line(m, "/sys/devices/system/cpu/intel_pstate/no_turbo"));
    json_object_set_new(object, "smt", read_line(m, "/sys/devices/system/cpu/smt/active"));
    json_object_set_new(object, "huge_pages", read_choice(m, "/sys/kernel/mm/transparent_hugepage/enabled"));
    json_object_set_new(object, "kernel", is_named ? json_string(system.release) : json_null());
    json_object_set_new(object, "nvidia_driver", read_line(m, "/sys/module/nvidia/version"));
    json_object_set_new(object, "stoker", json_string(stk_version()));
    json_object_set_new(object, "libraries", list_libraries());
    json_object_set_new(object, "gpus", list_gpus(m));
    json_object_set_new(object, "gpu_modes", list_facts(m, "gpu_mode"));
    json_object_set_new(object, "not_seen", list_facts(m, "missing"));
    return object;
}

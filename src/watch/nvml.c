#include "watch/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

static const char driver_library[] = "libnvidia-ml.so.1";

/* What would help against an error. */
static const char *remedy_of(nvml_result result)
{
    switch (result) {
    case NVML_NOT_SUPPORTED: return "this GPU, or its mode, does not tell it";
    case NVML_NO_PERMISSION: return "needs root, or the administrator's leave";
    case NVML_DRIVER_NOT_LOADED: return "needs the kernel's part of the driver: modprobe nvidia";
    case NVML_FUNCTION_NOT_FOUND: return "needs a newer driver";
    case NVML_GPU_IS_LOST: return "the GPU has fallen off the bus: dmesg, and a reboot";
    case NVML_VERSION_MISMATCH: return "library and kernel module differ, as after an upgrade: a reboot";
    default: return "does nvidia-smi work?";
    }
}

/* Notes once that a call failed. True: it went well. */
static bool check(const stk_watch_nvml *nvml, stk_watch_facts *facts, int i_gpu, const char *what, nvml_result result)
{
    if (result == 0) return true;
    const char *text = nvml->error_text ? nvml->error_text(result) : NULL;
    char gpu[24] = "";
    if (i_gpu >= 0) snprintf(gpu, sizeof(gpu), " of GPU %d", i_gpu);
    (void)stk_watch_facts_add(facts, "missing", "%s%s (NVML: %s; %s)", what, gpu, text ? text : "it failed",
                              remedy_of(result));
    return false;
}

/* A call that the library need not have. */
#define CALL(i_gpu, name, ...)                                                                                         \
    check(nvml, facts, i_gpu, what_##name, nvml->name ? nvml->name(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND)

#define X(name, symbol, parameters, what) static const char what_##name[] __attribute__((unused)) = what;
STK_WATCH_NVML_CALLS(X)
#undef X

/* A symbol as a function; ISO C has no cast for it. */
static void load(void *library, const char *symbol, void *function)
{
    void *address = dlsym(library, symbol);
    memcpy(function, &address, sizeof(address));
}

static void open_gpm(stk_watch_nvml *nvml, int i, stk_watch_facts *facts)
{
    nvml_gpm_support support = {1, 0};
    if (!nvml->gpm_support || nvml->gpm_support(nvml->device[i], &support) != 0 || !support.is_supported) {
        (void)stk_watch_facts_add(facts, "missing", "GPM counters (they need Hopper or newer)");
        return;
    }
    nvml_gpm_sample first, second;
    if (!CALL(i, gpm_alloc, &first)) return;
    if (!CALL(i, gpm_alloc, &second)) {
        if (nvml->gpm_free) nvml->gpm_free(first);
        return;
    }
    nvml->gpm[i][0] = first;
    nvml->gpm[i][1] = second;
}

/* Of GPUs that have such modes: others say so with an error. */
static void note_modes(const stk_watch_nvml *nvml, int i, stk_watch_facts *facts)
{
    static const char *const word[] = {"off", "on"};
    unsigned ecc = 0, later = 0, persistence = 0;
    bool has_ecc = nvml->ecc && nvml->ecc(nvml->device[i], &ecc, &later) == 0 && ecc <= 1;
    bool has_persistence =
        nvml->persistence && nvml->persistence(nvml->device[i], &persistence) == 0 && persistence <= 1;
    if (!has_ecc && !has_persistence) return;
    (void)stk_watch_facts_add(facts, "gpu_mode", "%d: ECC %s, persistence mode %s", i, has_ecc ? word[ecc] : "not told",
                              has_persistence ? word[persistence] : "not told");
}

static void open_gpu(stk_watch_nvml *nvml, int i, const stk_watch_root *root, stk_watch_facts *facts)
{
    char text[64];
    stk_watch_gpu_label *label = &nvml->label[i];
    nvml_pci pci = {0};
    nvml->numa_node[i] = -1;
    if (CALL(i, name, nvml->device[i], label->name, sizeof(label->name) - 1))
        (void)stk_watch_facts_add(facts, "gpu", "%d: %s", i, label->name);
    if (!CALL(i, uuid, nvml->device[i], label->uuid, sizeof(label->uuid) - 1)) label->uuid[0] = 0;
    if (CALL(i, pci, nvml->device[i], &pci) && pci.domain <= 0xffff) {
        snprintf(label->bus_id, sizeof(label->bus_id), "%08x:%02x:%02x.0", pci.domain, pci.bus & 0xff,
                 pci.device & 0xff);
        if (stk_watch_read(root, text, sizeof(text), "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", pci.domain,
                           pci.bus & 0xff, pci.device & 0xff))
            nvml->numa_node[i] = atoi(text);
    }
    note_modes(nvml, i, facts);
    open_gpm(nvml, i, facts);
}

stk_status stk_watch_nvml_open(stk_watch_nvml *nvml, const char *path, const stk_watch_root *root,
                               stk_watch_facts *facts)
{
    nvml_result (*init)(void);
    unsigned n = 0;
    memset(nvml, 0, sizeof(*nvml));
    if (!path) path = driver_library;
    nvml->library = stk_watch_is_hidden(root, path) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        return stk_watch_facts_add(facts, "missing", "GPUs: no '%s' (needs NVIDIA's driver; other makes are not read)",
                                   path);
    load(nvml->library, "nvmlInit_v2", &init);
    load(nvml->library, "nvmlShutdown", &nvml->shutdown);
    load(nvml->library, "nvmlErrorString", &nvml->error_text);
#define X(name, symbol, parameters, what) load(nvml->library, symbol, &nvml->name);
    STK_WATCH_NVML_CALLS(X)
#undef X
    if (!check(nvml, facts, -1, "GPUs", init ? init() : NVML_FUNCTION_NOT_FOUND)) {
        nvml->shutdown = NULL;
        return STK_OK;
    }
    if (!CALL(-1, count, &n)) return STK_OK;
    if (!CALL(-1, version, nvml->driver, sizeof(nvml->driver) - 1)) nvml->driver[0] = 0;
    if (n > STK_WATCH_MOST_GPUS)
        (void)stk_watch_facts_add(facts, "missing", "GPUs beyond the first %d (the machine has %u)",
                                  STK_WATCH_MOST_GPUS, n);
    nvml->n_gpus = n < STK_WATCH_MOST_GPUS ? (int)n : STK_WATCH_MOST_GPUS;
    for (int i = 0; i < nvml->n_gpus; i++) {
        nvml->device[i] = NULL;
        if (CALL(i, handle, (unsigned)i, &nvml->device[i]))
            open_gpu(nvml, i, root, facts);
        else
            nvml->device[i] = NULL;
    }
    return STK_OK;
}

void stk_watch_nvml_close(stk_watch_nvml *nvml)
{
    for (int i = 0; i < nvml->n_gpus; i++)
        for (int k = 0; k < 2; k++)
            if (nvml->gpm[i][k] && nvml->gpm_free) nvml->gpm_free(nvml->gpm[i][k]);
    if (nvml->shutdown) nvml->shutdown();
    if (nvml->library) dlclose(nvml->library);
    memset(nvml, 0, sizeof(*nvml));
}

/* --- one reading --- */

static void read_gpm(stk_watch_nvml *nvml, int i, stk_watch_gpu *gpu, stk_watch_facts *facts)
{
    static nvml_gpm_metrics metrics; /* 16 KiB; one thread at a time */
    if (!nvml->gpm[i][0]) return;
    if (!CALL(i, gpm_get, nvml->device[i], nvml->gpm[i][1])) return;
    memset(&metrics, 0, sizeof(metrics));
    metrics.version = 1;
    metrics.n = 3;
    metrics.first = nvml->gpm[i][0];
    metrics.second = nvml->gpm[i][1];
    metrics.metric[0].id = NVML_GPM_SM;
    metrics.metric[1].id = NVML_GPM_TENSOR;
    metrics.metric[2].id = NVML_GPM_DRAM;
    if (nvml->has_gpm_first[i] && CALL(i, gpm_metrics, &metrics)) {
        int64_t *into[] = {&gpu->sm_permille, &gpu->tensor_permille, &gpu->dram_permille};
        for (int k = 0; k < 3; k++)
            if (metrics.metric[k].result == 0 && metrics.metric[k].value >= 0 && metrics.metric[k].value <= 100)
                *into[k] = (int64_t)(10 * metrics.metric[k].value + 0.5);
    }
    nvml->has_gpm_first[i] = true;
    nvml_gpm_sample old = nvml->gpm[i][0];
    nvml->gpm[i][0] = nvml->gpm[i][1];
    nvml->gpm[i][1] = old;
}

/* In a container the driver's process numbers may be those of the host, which mean nothing here. */
static bool is_of_here(unsigned pid)
{
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

static int count_holders(const stk_watch_sample *sample)
{
    int n = 0;
    for (size_t i = 0; i < sample->processes.n; i++)
        n += stk_watch_process_at(sample, i)->holds_gpu == 1;
    return n;
}

/* Where none of a GPU's processes is known, those without a name here are the job's, as many as have the device's
 * files open. */
static void adopt(stk_watch_nvml *nvml, int i, const stk_watch_sample *sample, const nvml_process *list, unsigned n)
{
    int n_holders = count_holders(sample), n_adopted = 0;
    for (unsigned k = 0; k < n; k++)
        if (stk_watch_list_find(&sample->processes, (int64_t)list[k].pid)) n_holders = 0;
    for (unsigned k = 0; k < n && n_adopted < n_holders && n_adopted + 1 < STK_WATCH_MOST_GPU_PROCESSES; k++)
        if (!is_of_here(list[k].pid)) nvml->adopted[i][n_adopted++] = list[k].pid;
    nvml->adopted[i][n_adopted] = 0;
}

static bool is_adopted(const stk_watch_nvml *nvml, int i, unsigned pid)
{
    for (const unsigned *p = nvml->adopted[i]; *p; p++)
        if (*p == pid) return true;
    return false;
}

/* Those that draw, as a desktop's do: their memory has an owner, and they leave a GPU free to compute. One that does
 * both is in both lists. */
static void read_graphics(stk_watch_nvml *nvml, int i, stk_watch_sample *sample, stk_watch_gpu *gpu,
                          const nvml_process *computing, unsigned n_computing, stk_watch_facts *facts)
{
    nvml_process list[STK_WATCH_MOST_GPU_PROCESSES];
    unsigned n = STK_WATCH_MOST_GPU_PROCESSES;
    memset(list, 0, sizeof(list));
    if (!CALL(i, graphics, nvml->device[i], &n, list) || n > STK_WATCH_MOST_GPU_PROCESSES) return;
    for (unsigned k = 0; k < n; k++) {
        bool is_known = false;
        for (unsigned c = 0; c < n_computing; c++)
            is_known = is_known || computing[c].pid == list[k].pid;
        if (is_known) continue;
        stk_watch_process *own = stk_watch_list_find(&sample->processes, (int64_t)list[k].pid);
        int64_t mb = list[k].used == ~0ull ? 0 : (int64_t)(list[k].used >> 20);
        *(own ? &gpu->own_mb : &gpu->other_mb) += mb;
        if (!own) continue;
        own->gpu_mb += mb;
        gpu->n_own++;
        own->holds_gpu = 1;
    }
}

static void read_processes(stk_watch_nvml *nvml, int i, stk_watch_sample *sample, stk_watch_gpu *gpu,
                           stk_watch_facts *facts)
{
    nvml_process list[STK_WATCH_MOST_GPU_PROCESSES];
    unsigned n = STK_WATCH_MOST_GPU_PROCESSES;
    memset(list, 0, sizeof(list));
    gpu->own_mb = gpu->n_own = gpu->other_mb = gpu->n_other = -1;
    if (!CALL(i, processes, nvml->device[i], &n, list) || n > STK_WATCH_MOST_GPU_PROCESSES) return;
    gpu->own_mb = gpu->n_own = gpu->other_mb = gpu->n_other = 0;
    adopt(nvml, i, sample, list, n);
    for (unsigned k = 0; k < n; k++) {
        stk_watch_process *own = stk_watch_list_find(&sample->processes, (int64_t)list[k].pid);
        int64_t mb = list[k].used == ~0ull ? 0 : (int64_t)(list[k].used >> 20);
        bool is_own = own || is_adopted(nvml, i, list[k].pid);
        *(is_own ? &gpu->own_mb : &gpu->other_mb) += mb;
        *(is_own ? &gpu->n_own : &gpu->n_other) += 1;
        if (!own) continue;
        own->holds_gpu = 1;
        own->gpu_mb += mb;
    }
    read_graphics(nvml, i, sample, gpu, list, n, facts);
}

/* The driver keeps some samples of each process; the newest counts. */
static bool is_newest(const nvml_process_sample *list, unsigned n, unsigned k)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i].pid == list[k].pid &&
            (list[i].time_us > list[k].time_us || (list[i].time_us == list[k].time_us && i > k)))
            return false;
    return true;
}

static void read_process_utilization(stk_watch_nvml *nvml, int i, stk_watch_sample *sample, stk_watch_gpu *gpu,
                                     stk_watch_facts *facts)
{
    nvml_process_sample list[STK_WATCH_MOST_PROCESS_SAMPLES];
    unsigned n = STK_WATCH_MOST_PROCESS_SAMPLES;
    int64_t other = 0;
    memset(list, 0, sizeof(list));
    gpu->other_busy_permille = -1;
    nvml_result result = nvml->process_utilization
                             ? nvml->process_utilization(nvml->device[i], list, &n, nvml->seen_us[i])
                             : NVML_FUNCTION_NOT_FOUND;
    /* Where nothing ran since the last time, which is no fault. */
    if (result == NVML_NOT_FOUND) return;
    if (!check(nvml, facts, i, what_process_utilization, result) || n > STK_WATCH_MOST_PROCESS_SAMPLES) return;
    for (unsigned k = 0; k < n; k++) {
        if (list[k].time_us > nvml->seen_us[i]) nvml->seen_us[i] = list[k].time_us;
        if (list[k].sm > 100 || !is_newest(list, n, k)) continue;
        stk_watch_process *own = stk_watch_list_find(&sample->processes, (int64_t)list[k].pid);
        if (own)
            own->gpu_busy_permille =
                10 * (int64_t)list[k].sm + (own->gpu_busy_permille > 0 ? own->gpu_busy_permille : 0);
        else if (!is_adopted(nvml, i, list[k].pid))
            other += list[k].sm;
    }
    gpu->other_busy_permille = 10 * other;
}

/* value: by address, since a call that fills it may be evaluated after the other argument. */
static int64_t or_missing(bool good, const unsigned *value)
{
    return good ? (int64_t)*value : -1;
}

static void read_slow(stk_watch_nvml *nvml, int i, stk_watch_gpu *gpu, stk_watch_facts *facts)
{
    nvml_device device = nvml->device[i];
    unsigned value = 0, pending = 0;
    unsigned long long mj = 0;
    gpu->pcie_sent_kbs = or_missing(CALL(i, pcie, device, NVML_PCIE_SENT, &value), &value);
    gpu->pcie_received_kbs = or_missing(CALL(i, pcie, device, NVML_PCIE_RECEIVED, &value), &value);
    gpu->pcie_generation = or_missing(CALL(i, pcie_generation, device, &value), &value);
    gpu->pcie_most_generation = or_missing(CALL(i, pcie_most_generation, device, &value), &value);
    gpu->pcie_width = or_missing(CALL(i, pcie_width, device, &value), &value);
    gpu->pcie_most_width = or_missing(CALL(i, pcie_most_width, device, &value), &value);
    gpu->power_limit_mw = or_missing(CALL(i, power_limit, device, &value), &value);
    gpu->clock_most_mhz = or_missing(CALL(i, clock_most, device, NVML_CLOCK_SM, &value), &value);
    gpu->energy_mj = CALL(i, energy, device, &mj) && mj <= INT64_MAX ? (int64_t)mj : -1;
    /* Most GPUs have no MIG and say so with an error. */
    gpu->mig = nvml->mig && nvml->mig(device, &value, &pending) == 0 ? (int64_t)value : 0;
}

static void read_fast(stk_watch_nvml *nvml, int i, stk_watch_gpu *gpu, stk_watch_facts *facts)
{
    nvml_device device = nvml->device[i];
    nvml_utilization busy = {0, 0};
    nvml_memory memory = {0, 0, 0};
    unsigned value = 0;
    unsigned long long mask = 0;
    bool good = CALL(i, utilization, device, &busy);
    gpu->busy_permille = good && busy.gpu <= 100 ? (int64_t)busy.gpu * 10 : -1;
    gpu->memory_busy_permille = good && busy.memory <= 100 ? (int64_t)busy.memory * 10 : -1;
    good = CALL(i, memory, device, &memory);
    gpu->memory_mb = good ? (int64_t)(memory.total >> 20) : -1;
    gpu->memory_used_mb = good ? (int64_t)(memory.used >> 20) : -1;
    gpu->power_mw = or_missing(CALL(i, power, device, &value), &value);
    gpu->clock_mhz = or_missing(CALL(i, clock, device, NVML_CLOCK_SM, &value), &value);
    gpu->celsius = or_missing(CALL(i, temperature, device, NVML_TEMPERATURE_GPU, &value), &value);
    gpu->slowdown_mask = CALL(i, slowdown, device, &mask) ? (int64_t)(mask & 0xffff) : -1;
    gpu->numa_node = nvml->numa_node[i];
}

/* Whether a GPU's memory tells that processes have come or gone since they were listed. */
static bool has_moved(const stk_watch_nvml *nvml, int i, const stk_watch_gpu *gpu)
{
    enum { FEW_MB = 64 };
    return llabs((long long)(gpu->memory_used_mb - nvml->listed_mb[i])) > FEW_MB;
}

/* with_use: how busy each is, too, of which the driver has nothing new after a moment. */
static void list_processes(stk_watch_nvml *nvml, bool with_use, stk_watch_sample *sample, stk_watch_facts *facts)
{
    for (size_t k = 0; k < sample->processes.n; k++) {
        stk_watch_process *p = stk_watch_process_at(sample, k);
        p->gpu_mb = 0;
        if (with_use) p->gpu_busy_permille = -1;
    }
    for (size_t k = 0; k < sample->gpus.n; k++) {
        stk_watch_gpu *gpu = stk_watch_gpu_at(sample, k);
        int i = (int)gpu->id;
        if (!nvml->device[i]) continue;
        nvml->listed_mb[i] = gpu->memory_used_mb;
        read_processes(nvml, i, sample, gpu, facts);
        if (with_use) read_process_utilization(nvml, i, sample, gpu, facts);
    }
}

stk_status stk_watch_nvml_read(stk_watch_nvml *nvml, bool is_slow, stk_watch_sample *sample, stk_watch_facts *facts)
{
    bool lists = is_slow;
    for (int i = 0; i < nvml->n_gpus; i++) {
        if (!nvml->device[i]) continue;
        stk_watch_gpu *gpu = stk_watch_list_add(&sample->gpus, i);
        if (!gpu) return stk_fail_memory(sizeof(*gpu));
        read_fast(nvml, i, gpu, facts);
        read_gpm(nvml, i, gpu, facts);
        if (is_slow) read_slow(nvml, i, gpu, facts);
        lists = lists || has_moved(nvml, i, gpu);
    }
    if (lists) list_processes(nvml, is_slow, sample, facts);
    return STK_OK;
}

/* A stand-in for NVIDIA's management library, for tests of `stoker watch` on machines without a GPU. It plays GPUs
 * whose utilisation, power, heat and memory follow from what jobs do: a job that would compute on a GPU sets a flag in
 * a shared file while it does (tests/watch/meter.py, meter.h), and this library measures how long. It knows nothing of
 * cases.
 *
 * FAKE_NVML_METER   the shared file
 * FAKE_NVML_GPUS    how many GPUs there are; 1
 * FAKE_NVML_COOLING watts that the cooling takes away for each kelvin above 30 degrees; 15
 * FAKE_NVML_LIMIT   the power limit in watts; 700
 * FAKE_NVML_LINK    the PCIe link's generation, of 5; 5
 * FAKE_NVML_MIG     1: the GPU is cut into parts, and tells no utilisation
 * FAKE_NVML_PARTS   how many; 2
 * FAKE_NVML_LINKS   "switch": each GPU has 18 links of NVLink to switches; "pairs": 4 to the GPU beside it
 * FAKE_NVML_KEEP    1: memory of processes that were killed is not given back
 * FAKE_NVML_GPM     1: counters of SM activity
 * FAKE_NVML_DRAWN   megabytes of a process that draws on each GPU, as a desktop
 * FAKE_NVML_LOST    the number of a GPU that has fallen off the bus
 * FAKE_NVML_HOST    what is added to numbers of processes, as a host has others than a container
 * FAKE_NVML_BLOCK   the name of a call that never returns, as with a driver that hangs
 * FAKE_NVML_FAIL    names of calls, separated by commas, that say "not supported"; "all"
 * FAKE_NVML_CODE    what they say instead, a number
 * FAKE_NVML_LATE    seconds after which they begin to fail, or never to return; 0
 * FAKE_NVML_NAME    what the GPUs are called
 * FAKE_NVML_JUNK    1: numbers that no GPU has
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "watch/meter.h"
#include "watch/nvml.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    WELL = 0,
    BAD_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TOTAL_MB = 81920,
    MOST_MHZ = 1980,
    HOT = 83
};
static const double idle_w = 70, most_w = 700, heat_capacity = 55; /* joules for a kelvin */

struct nvml_device_st {
    int index;
    int64_t at_ns, busy_ns, work_ns, pcie_bytes; /* at the last look */
    int64_t slot_busy_ns[METER_SLOTS];
    double busy, work, pcie_bs, celsius, joules, slot_busy[METER_SLOTS];
};
struct nvml_gpm_sample_st {
    int64_t at_ns, work_ns;
};

static struct nvml_device_st devices[METER_GPUS], parts[8];
static const meter *shared;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double setting(const char *name, double default_value)
{
    const char *text = getenv(name);
    return text ? atof(text) : default_value;
}

/* Whether that many seconds are over since the first call. */
static int is_late(void)
{
    static int64_t begin_ns;
    if (!begin_ns) begin_ns = now_ns();
    return (double)(now_ns() - begin_ns) >= 1e9 * setting("FAKE_NVML_LATE", 0);
}

static int fails(const char *symbol)
{
    const char *list = getenv("FAKE_NVML_FAIL");
    return is_late() && list && (!strcmp(list, "all") || strstr(list, symbol));
}

static void block(const char *symbol)
{
    const char *name = getenv("FAKE_NVML_BLOCK");
    while (is_late() && name && !strcmp(name, symbol))
        pause();
}

#define REFUSE                                                                                                         \
    block(__func__);                                                                                                   \
    if (fails(__func__)) return (nvml_result)setting("FAKE_NVML_CODE", NOT_SUPPORTED)

/* How long the running kernel has run. */
static int64_t open_ns(const meter_slot *slot, int64_t now)
{
    int64_t since = slot->since_ns, until = slot->until_ns, end = until > 0 && until < now ? until : now;
    return since > 0 && since < end ? end - since : 0;
}

static void sum_slots(int index, int64_t now, int64_t *busy, int64_t *work, int64_t *bytes)
{
    *busy = *work = *bytes = 0;
    for (int i = 0; shared && i < METER_SLOTS; i++) {
        const meter_slot *slot = &shared->slot[index][i];
        int64_t open = open_ns(slot, now);
        *busy += slot->busy_ns + open;
        *work += slot->work_ns + open / 1000 * slot->permille;
        *bytes += slot->pcie_bytes;
    }
}

/* What it would draw at full clocks. */
static double wanted_watts(const struct nvml_device_st *device)
{
    return idle_w + (most_w - idle_w) * device->work;
}

static double watts_of(const struct nvml_device_st *device)
{
    return fmin(wanted_watts(device), setting("FAKE_NVML_LIMIT", most_w));
}

/* Measures since the last look, where that is at least 40 ms ago. */
static void look(struct nvml_device_st *device)
{
    int64_t now = now_ns(), busy, work, bytes;
    if (device->at_ns && now - device->at_ns < 40000000) return;
    sum_slots(device->index, now, &busy, &work, &bytes);
    double s = device->at_ns ? (double)(now - device->at_ns) : 0;
    if (s > 0) {
        device->busy = (double)(busy - device->busy_ns) / s;
        device->work = (double)(work - device->work_ns) / s;
        device->pcie_bs = (double)(bytes - device->pcie_bytes) / (s * 1e-9);
        if (device->busy > 1) device->busy = 1;
        if (device->work > 1) device->work = 1;
        device->joules += watts_of(device) * s * 1e-9;
        device->celsius +=
            (watts_of(device) - setting("FAKE_NVML_COOLING", 15) * (device->celsius - 30)) / heat_capacity * s * 1e-9;
    }
    for (int i = 0; shared && i < METER_SLOTS; i++) {
        const meter_slot *slot = &shared->slot[device->index][i];
        int64_t total = slot->busy_ns + open_ns(slot, now);
        device->slot_busy[i] = s > 0 ? (double)(total - device->slot_busy_ns[i]) / s : 0;
        device->slot_busy_ns[i] = total;
    }
    device->at_ns = now;
    device->busy_ns = busy;
    device->work_ns = work;
    device->pcie_bytes = bytes;
}

/* What is told instead of a number: the number, or junk. */
static unsigned told(double value)
{
    return setting("FAKE_NVML_JUNK", 0) > 0 ? 4294967295u : (unsigned)value;
}

static int lives(const meter_slot *slot)
{
    return slot->pid > 0 && (kill((pid_t)slot->pid, 0) == 0 || errno == EPERM);
}

EXPORT nvml_result nvmlInit_v2(void);
nvml_result nvmlInit_v2(void)
{
    REFUSE;
    const char *path = getenv("FAKE_NVML_METER");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *map = mmap(NULL, sizeof(meter), PROT_READ, MAP_SHARED, fd, 0);
        shared = map == MAP_FAILED ? NULL : map;
        close(fd);
    }
    for (int i = 0; i < METER_GPUS; i++) {
        devices[i].index = i;
        devices[i].celsius = 45;
    }
    return WELL;
}

EXPORT nvml_result nvmlShutdown(void);
nvml_result nvmlShutdown(void)
{
    return WELL;
}

EXPORT const char *nvmlErrorString(nvml_result result);
const char *nvmlErrorString(nvml_result result)
{
    return result == NOT_SUPPORTED       ? "Not Supported"
           : result == NOT_FOUND         ? "Not Found"
           : result == INSUFFICIENT_SIZE ? "Insufficient Size"
                                         : "Unknown Error";
}

EXPORT nvml_result nvmlDeviceGetCount_v2(unsigned *n);
nvml_result nvmlDeviceGetCount_v2(unsigned *n)
{
    REFUSE;
    *n = (unsigned)setting("FAKE_NVML_GPUS", 1);
    return WELL;
}

EXPORT nvml_result nvmlSystemGetDriverVersion(char *version, unsigned n);
nvml_result nvmlSystemGetDriverVersion(char *version, unsigned n)
{
    REFUSE;
    snprintf(version, n, "580.65.06");
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned i, nvml_device *out);
nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned i, nvml_device *out)
{
    REFUSE;
    if (i >= METER_GPUS) return BAD_ARGUMENT;
    if ((int)i == (int)setting("FAKE_NVML_LOST", -1)) return NVML_GPU_IS_LOST;
    *out = &devices[i];
    return WELL;
}

static int is_part(nvml_device device)
{
    return device >= parts && device < parts + sizeof(parts) / sizeof(parts[0]);
}

EXPORT nvml_result nvmlDeviceGetName(nvml_device device, char *name, unsigned n);
nvml_result nvmlDeviceGetName(nvml_device device, char *name, unsigned n)
{
    REFUSE;
    const char *wanted = getenv("FAKE_NVML_NAME");
    snprintf(name, n, "%s%s", wanted ? wanted : "Played GPU", is_part(device) ? " MIG 1g.10gb" : "");
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned n);
nvml_result nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned n)
{
    REFUSE;
    snprintf(uuid, n, "GPU-00000000-0000-0000-0000-%012d", device->index);
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetUtilizationRates(nvml_device device, nvml_utilization *out);
nvml_result nvmlDeviceGetUtilizationRates(nvml_device device, nvml_utilization *out)
{
    REFUSE;
    look(device);
    if (setting("FAKE_NVML_MIG", 0) > 0) return NOT_SUPPORTED;
    out->gpu = told(100 * device->busy + 0.5);
    out->memory = told(60 * device->work);
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetMemoryInfo(nvml_device device, nvml_memory *out);
nvml_result nvmlDeviceGetMemoryInfo(nvml_device device, nvml_memory *out)
{
    REFUSE;
    out->total = (unsigned long long)TOTAL_MB << 20 >> (is_part(device) ? 3 : 0);
    out->used = (500ull + (unsigned long long)setting("FAKE_NVML_DRAWN", 0)) << 20;
    for (int i = 0; shared && i < METER_SLOTS; i++)
        if (lives(&shared->slot[device->index][i]) || setting("FAKE_NVML_KEEP", 0) > 0)
            out->used += (unsigned long long)shared->slot[device->index][i].memory_mb << 20;
    if (setting("FAKE_NVML_JUNK", 0) > 0) out->used = ~0ull;
    out->free = out->total - out->used;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetPowerUsage(nvml_device device, unsigned *mw);
nvml_result nvmlDeviceGetPowerUsage(nvml_device device, unsigned *mw)
{
    REFUSE;
    look(device);
    *mw = told(1000 * watts_of(device));
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *mj);
nvml_result nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *mj)
{
    REFUSE;
    look(device);
    *mj = setting("FAKE_NVML_JUNK", 0) > 0 ? ~0ull : (unsigned long long)(1e6 + 1000 * device->joules);
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *mw);
nvml_result nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *mw)
{
    (void)device;
    REFUSE;
    *mw = told(1000 * setting("FAKE_NVML_LIMIT", most_w));
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetClockInfo(nvml_device device, int kind, unsigned *mhz);
nvml_result nvmlDeviceGetClockInfo(nvml_device device, int kind, unsigned *mhz)
{
    (void)kind;
    REFUSE;
    look(device);
    double above = device->celsius - HOT;
    /* Power goes with the third power of the clock, as voltage follows it. */
    double capped = 0.97 * cbrt(watts_of(device) / wanted_watts(device));
    *mhz = told(MOST_MHZ * (above > 0 ? (above > 20 ? 0.5 : 0.8 - 0.015 * above) : capped));
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetMaxClockInfo(nvml_device device, int kind, unsigned *mhz);
nvml_result nvmlDeviceGetMaxClockInfo(nvml_device device, int kind, unsigned *mhz)
{
    (void)device;
    (void)kind;
    REFUSE;
    *mhz = told(MOST_MHZ);
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetTemperature(nvml_device device, int kind, unsigned *celsius);
nvml_result nvmlDeviceGetTemperature(nvml_device device, int kind, unsigned *celsius)
{
    (void)kind;
    REFUSE;
    look(device);
    *celsius = told(device->celsius);
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *mask);
nvml_result nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *mask)
{
    REFUSE;
    look(device);
    *mask = device->celsius > HOT                     ? NVML_SLOW_HEAT_HARDWARE
            : watts_of(device) < wanted_watts(device) ? NVML_SLOW_POWER_CAP
            : device->busy < 0.01                     ? NVML_SLOW_IDLE
                                                      : 0;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetPcieThroughput(nvml_device device, int kind, unsigned *kbs);
nvml_result nvmlDeviceGetPcieThroughput(nvml_device device, int kind, unsigned *kbs)
{
    REFUSE;
    look(device);
    *kbs = kind == NVML_PCIE_RECEIVED ? (unsigned)(device->pcie_bs / 1000) : (unsigned)(device->pcie_bs / 20000);
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetMigMode(nvml_device device, unsigned *now, unsigned *later);
nvml_result nvmlDeviceGetMigMode(nvml_device device, unsigned *now, unsigned *later)
{
    (void)device;
    REFUSE;
    *now = *later = setting("FAKE_NVML_MIG", 0) > 0;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetEccMode(nvml_device device, unsigned *now, unsigned *later);
nvml_result nvmlDeviceGetEccMode(nvml_device device, unsigned *now, unsigned *later)
{
    (void)device;
    REFUSE;
    *now = *later = 1;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetPersistenceMode(nvml_device device, unsigned *on);
nvml_result nvmlDeviceGetPersistenceMode(nvml_device device, unsigned *on)
{
    (void)device;
    REFUSE;
    *on = 0;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *n);
nvml_result nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *n)
{
    (void)device;
    REFUSE;
    *n = 7;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned i, nvml_device *out);
nvml_result nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned i, nvml_device *out)
{
    (void)device;
    REFUSE;
    if (i % 2 || i / 2 >= (unsigned)setting("FAKE_NVML_PARTS", 2)) return NOT_FOUND; /* numbers have gaps */
    parts[i].index = (int)i;
    *out = &parts[i];
    return WELL;
}

/* Of the link: does it lead to a switch, and to which bus? False: it is down. */
static int link_of(nvml_device device, unsigned i, int *to_switch, unsigned *bus)
{
    const char *kind = getenv("FAKE_NVML_LINKS");
    *to_switch = kind && !strcmp(kind, "switch");
    *bus = *to_switch ? 0xf0 : 0x41U + (unsigned)(device->index ^ 1);
    return kind && i < (*to_switch ? 18U : 4U);
}

EXPORT nvml_result nvmlDeviceGetNvLinkState(nvml_device device, unsigned i, int *up);
nvml_result nvmlDeviceGetNvLinkState(nvml_device device, unsigned i, int *up)
{
    int to_switch;
    unsigned bus;
    REFUSE;
    if (!getenv("FAKE_NVML_LINKS")) return NOT_SUPPORTED;
    *up = link_of(device, i, &to_switch, &bus);
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetNvLinkVersion(nvml_device device, unsigned i, unsigned *version);
nvml_result nvmlDeviceGetNvLinkVersion(nvml_device device, unsigned i, unsigned *version)
{
    (void)device, (void)i;
    REFUSE;
    *version = 4;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned i, int *kind);
nvml_result nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned i, int *kind)
{
    int to_switch;
    unsigned bus;
    REFUSE;
    if (!link_of(device, i, &to_switch, &bus)) return NOT_FOUND;
    *kind = to_switch ? 2 : 0;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned i, nvml_pci *pci);
nvml_result nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned i, nvml_pci *pci)
{
    int to_switch;
    unsigned bus;
    REFUSE;
    if (!link_of(device, i, &to_switch, &bus)) return NOT_FOUND;
    memset(pci, 0, sizeof(*pci));
    pci->bus = bus;
    return WELL;
}

/* Two and two lie behind one bridge, four at one processor. */
EXPORT nvml_result nvmlDeviceGetTopologyCommonAncestor(nvml_device a, nvml_device b, int *level);
nvml_result nvmlDeviceGetTopologyCommonAncestor(nvml_device a, nvml_device b, int *level)
{
    REFUSE;
    *level = a->index / 2 == b->index / 2 ? 10 : a->index / 4 == b->index / 4 ? 40 : 50;
    return WELL;
}

static nvml_result put(unsigned *out, unsigned value)
{
    *out = told(value);
    return WELL;
}

#define CONSTANT(name, value)                                                                                          \
    EXPORT nvml_result name(nvml_device device, unsigned *out);                                                        \
    nvml_result name(nvml_device device, unsigned *out)                                                                \
    {                                                                                                                  \
        (void)device;                                                                                                  \
        REFUSE;                                                                                                        \
        return put(out, value);                                                                                        \
    }
CONSTANT(nvmlDeviceGetCurrPcieLinkGeneration, (unsigned)setting("FAKE_NVML_LINK", 5))
CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, 5)
CONSTANT(nvmlDeviceGetCurrPcieLinkWidth, 16)
CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, 16)

EXPORT nvml_result nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *n, nvml_process *out);
nvml_result nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *n, nvml_process *out)
{
    REFUSE;
    unsigned found = 0;
    for (int i = 0; shared && i < METER_SLOTS && found < *n; i++) {
        const meter_slot *slot = &shared->slot[device->index][i];
        if (!lives(slot)) continue;
        memset(&out[found], 0, sizeof(out[0]));
        out[found].pid = (unsigned)(slot->pid + (int64_t)setting("FAKE_NVML_HOST", 0));
        out[found++].used = (unsigned long long)slot->memory_mb << 20;
    }
    *n = found;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned *n, nvml_process *out);
nvml_result nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned *n, nvml_process *out)
{
    (void)device;
    REFUSE;
    double drawn_mb = setting("FAKE_NVML_DRAWN", 0);
    unsigned found = drawn_mb > 0 && *n > 0;
    if (found) {
        memset(&out[0], 0, sizeof(out[0]));
        out[0].pid = 1;
        out[0].used = (unsigned long long)drawn_mb << 20;
    }
    *n = found;
    return WELL;
}

EXPORT nvml_result nvmlDeviceGetProcessUtilization(nvml_device device, nvml_process_sample *out, unsigned *n,
                                                   unsigned long long seen_us);
nvml_result nvmlDeviceGetProcessUtilization(nvml_device device, nvml_process_sample *out, unsigned *n,
                                            unsigned long long seen_us)
{
    (void)seen_us;
    REFUSE;
    /* As the driver of an H100: room for all that it keeps, of which each process has more than one. */
    enum { KEPT = 120, EACH = 2, SAMPLE_US = 166667 };
    unsigned found = 0;
    if (*n < KEPT) {
        *n = KEPT;
        return INSUFFICIENT_SIZE;
    }
    look(device);
    for (int i = 0; shared && i < EACH * METER_SLOTS && found < *n; i++) {
        const meter_slot *slot = &shared->slot[device->index][i / EACH];
        const double busy = device->slot_busy[i / EACH];
        if (!lives(slot)) continue;
        memset(&out[found], 0, sizeof(out[0]));
        out[found].pid = (unsigned)(slot->pid + (int64_t)setting("FAKE_NVML_HOST", 0));
        out[found].time_us = (unsigned long long)(now_ns() / 1000) - (unsigned long long)(i % EACH * SAMPLE_US);
        out[found++].sm = (unsigned)(100 * (busy > 1 ? 1 : busy));
    }
    *n = found;
    return found ? WELL : NOT_FOUND;
}

EXPORT nvml_result nvmlDeviceGetPciInfo_v3(nvml_device device, nvml_pci *out);
nvml_result nvmlDeviceGetPciInfo_v3(nvml_device device, nvml_pci *out)
{
    REFUSE;
    memset(out, 0, sizeof(*out));
    out->bus = 0x41 + (unsigned)device->index;
    return WELL;
}

EXPORT nvml_result nvmlGpmQueryDeviceSupport(nvml_device device, nvml_gpm_support *out);
nvml_result nvmlGpmQueryDeviceSupport(nvml_device device, nvml_gpm_support *out)
{
    (void)device;
    REFUSE;
    out->is_supported = setting("FAKE_NVML_GPM", 0) > 0;
    return WELL;
}

EXPORT nvml_result nvmlGpmSampleAlloc(nvml_gpm_sample *out);
nvml_result nvmlGpmSampleAlloc(nvml_gpm_sample *out)
{
    REFUSE;
    *out = calloc(1, sizeof(**out));
    return *out ? WELL : NOT_SUPPORTED;
}

EXPORT nvml_result nvmlGpmSampleFree(nvml_gpm_sample sample);
nvml_result nvmlGpmSampleFree(nvml_gpm_sample sample)
{
    free(sample);
    return WELL;
}

EXPORT nvml_result nvmlGpmSampleGet(nvml_device device, nvml_gpm_sample sample);
nvml_result nvmlGpmSampleGet(nvml_device device, nvml_gpm_sample sample)
{
    REFUSE;
    int64_t busy, bytes;
    sample->at_ns = now_ns();
    sum_slots(device->index, sample->at_ns, &busy, &sample->work_ns, &bytes);
    return WELL;
}

EXPORT nvml_result nvmlGpmMetricsGet(nvml_gpm_metrics *metrics);
nvml_result nvmlGpmMetricsGet(nvml_gpm_metrics *metrics)
{
    REFUSE;
    double s = (double)(metrics->second->at_ns - metrics->first->at_ns);
    double work = s > 0 ? (double)(metrics->second->work_ns - metrics->first->work_ns) / s : 0;
    for (unsigned i = 0; i < metrics->n; i++) {
        metrics->metric[i].result = WELL;
        metrics->metric[i].value = 100 * (work > 1 ? 1 : work) * (metrics->metric[i].id == NVML_GPM_SM ? 1 : 0.6);
    }
    return WELL;
}

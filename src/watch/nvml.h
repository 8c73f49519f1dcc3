/* Our own declarations of the few calls of NVIDIA's management library (NVML API reference, driver 535) that the doctor
 * makes, and the library, which is loaded when there is one. Threads: one at a time. */
#ifndef STK_WATCH_NVML_H
#define STK_WATCH_NVML_H

#include <stdbool.h>

#include "watch/facts.h"
#include "watch/root.h"
#include "watch/sample.h"

/* --- what the library declares --- */

typedef int nvml_result; /* 0: well */
enum {
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_VERSION_MISMATCH = 18,
};
typedef struct nvml_device_st *nvml_device;
typedef struct nvml_gpm_sample_st *nvml_gpm_sample;
typedef struct {
    unsigned gpu, memory; /* per cent */
} nvml_utilization;
typedef struct {
    unsigned long long total, free, used; /* bytes */
} nvml_memory;
typedef struct {
    unsigned pid;
    unsigned long long used; /* bytes; all ones: not told */
    unsigned gpu_instance, compute_instance;
} nvml_process;
typedef struct {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder; /* per cent */
} nvml_process_sample;
typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
} nvml_pci;
typedef struct {
    unsigned version, is_supported;
} nvml_gpm_support;
typedef struct {
    unsigned id;
    nvml_result result;
    double value; /* per cent */
    const char *short_name, *long_name, *unit;
} nvml_gpm_metric;
enum { NVML_GPM_SM = 2, NVML_GPM_TENSOR = 5, NVML_GPM_DRAM = 10, NVML_GPM_MOST = 400 };
typedef struct {
    unsigned version, n;
    nvml_gpm_sample first, second;
    nvml_gpm_metric metric[NVML_GPM_MOST];
} nvml_gpm_metrics;
enum { NVML_CLOCK_SM = 1, NVML_TEMPERATURE_GPU = 0, NVML_PCIE_SENT = 0, NVML_PCIE_RECEIVED = 1 };
/* Why clocks are lower than they could be. */
enum {
    NVML_SLOW_IDLE = 0x1,
    NVML_SLOW_POWER_CAP = 0x4,
    NVML_SLOW_HARDWARE = 0x8,
    NVML_SLOW_HEAT_SOFTWARE = 0x20,
    NVML_SLOW_HEAT_HARDWARE = 0x40,
    NVML_SLOW_POWER_BRAKE = 0x80,
};

/* X(our name, the library's symbol, parameters, what the user misses without it) */
#define STK_WATCH_NVML_CALLS(X)                                                                                        \
    X(count, "nvmlDeviceGetCount_v2", (unsigned *), "the number of GPUs")                                              \
    X(handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned, nvml_device *), "the GPU")                                   \
    X(version, "nvmlSystemGetDriverVersion", (char *, unsigned), "the driver's version")                               \
    X(uuid, "nvmlDeviceGetUUID", (nvml_device, char *, unsigned), "the GPU's UUID")                                    \
    X(name, "nvmlDeviceGetName", (nvml_device, char *, unsigned), "the GPU's name")                                    \
    X(utilization, "nvmlDeviceGetUtilizationRates", (nvml_device, nvml_utilization *), "GPU utilisation")              \
    X(memory, "nvmlDeviceGetMemoryInfo", (nvml_device, nvml_memory *), "GPU memory")                                   \
    X(power, "nvmlDeviceGetPowerUsage", (nvml_device, unsigned *), "GPU power")                                        \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (nvml_device, unsigned *), "the GPU's power limit")              \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption", (nvml_device, unsigned long long *), "energy (Volta and newer)")  \
    X(clock, "nvmlDeviceGetClockInfo", (nvml_device, int, unsigned *), "GPU clocks")                                   \
    X(clock_most, "nvmlDeviceGetMaxClockInfo", (nvml_device, int, unsigned *), "the GPU's highest clock")              \
    X(temperature, "nvmlDeviceGetTemperature", (nvml_device, int, unsigned *), "GPU temperature")                      \
    X(slowdown, "nvmlDeviceGetCurrentClocksThrottleReasons", (nvml_device, unsigned long long *),                      \
      "the reasons for low GPU clocks")                                                                                \
    X(pcie, "nvmlDeviceGetPcieThroughput", (nvml_device, int, unsigned *), "PCIe traffic")                             \
    X(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", (nvml_device, unsigned *), "the PCIe generation")        \
    X(pcie_most_generation, "nvmlDeviceGetMaxPcieLinkGeneration", (nvml_device, unsigned *),                           \
      "the highest PCIe generation")                                                                                   \
    X(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", (nvml_device, unsigned *), "the PCIe width")                       \
    X(pcie_most_width, "nvmlDeviceGetMaxPcieLinkWidth", (nvml_device, unsigned *), "the greatest PCIe width")          \
    X(processes, "nvmlDeviceGetComputeRunningProcesses_v3", (nvml_device, unsigned *, nvml_process *),                 \
      "which processes use the GPU")                                                                                   \
    X(graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3", (nvml_device, unsigned *, nvml_process *),                 \
      "which processes draw on the GPU")                                                                               \
    X(process_utilization, "nvmlDeviceGetProcessUtilization",                                                          \
      (nvml_device, nvml_process_sample *, unsigned *, unsigned long long), "GPU utilisation by process")              \
    X(mig, "nvmlDeviceGetMigMode", (nvml_device, unsigned *, unsigned *), "whether the GPU is cut into parts (MIG)")   \
    X(ecc, "nvmlDeviceGetEccMode", (nvml_device, unsigned *, unsigned *), "whether memory is checked (ECC)")           \
    X(persistence, "nvmlDeviceGetPersistenceMode", (nvml_device, unsigned *), "whether the driver stays loaded")       \
    X(pci, "nvmlDeviceGetPciInfo_v3", (nvml_device, nvml_pci *), "the GPU's place on the bus")                         \
    X(parts, "nvmlDeviceGetMaxMigDeviceCount", (nvml_device, unsigned *), "the GPU's parts")                           \
    X(part, "nvmlDeviceGetMigDeviceHandleByIndex", (nvml_device, unsigned, nvml_device *), "the GPU's parts")          \
    X(link, "nvmlDeviceGetNvLinkState", (nvml_device, unsigned, int *), "NVLink")                                      \
    X(link_version, "nvmlDeviceGetNvLinkVersion", (nvml_device, unsigned, unsigned *), "NVLink's version")             \
    X(link_kind, "nvmlDeviceGetNvLinkRemoteDeviceType", (nvml_device, unsigned, int *), "where NVLink leads")          \
    X(link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2", (nvml_device, unsigned, nvml_pci *), "where NVLink leads")      \
    X(common, "nvmlDeviceGetTopologyCommonAncestor", (nvml_device, nvml_device, int *), "the way between two GPUs")    \
    X(gpm_support, "nvmlGpmQueryDeviceSupport", (nvml_device, nvml_gpm_support *), "GPM counters")                     \
    X(gpm_alloc, "nvmlGpmSampleAlloc", (nvml_gpm_sample *), "GPM counters")                                            \
    X(gpm_free, "nvmlGpmSampleFree", (nvml_gpm_sample), "GPM counters")                                                \
    X(gpm_get, "nvmlGpmSampleGet", (nvml_device, nvml_gpm_sample), "GPM counters")                                     \
    X(gpm_metrics, "nvmlGpmMetricsGet", (nvml_gpm_metrics *), "GPM counters")

/* --- the library, loaded --- */

/* An H100's driver wants room for more than 64 samples of processes, whatever runs. */
enum { STK_WATCH_MOST_GPUS = 64, STK_WATCH_MOST_GPU_PROCESSES = 64, STK_WATCH_MOST_PROCESS_SAMPLES = 1024 };

/* What a GPU is called; "": not told. */
typedef struct stk_watch_gpu_label {
    char name[96], uuid[96], bus_id[32];
} stk_watch_gpu_label;

typedef struct stk_watch_nvml {
    void *library; /* NULL: there is none */
    int n_gpus;
    nvml_device device[STK_WATCH_MOST_GPUS];     /* by the driver's numbers; NULL: it gives none, as of a lost GPU */
    nvml_gpm_sample gpm[STK_WATCH_MOST_GPUS][2]; /* NULL: this GPU counts none */
    bool has_gpm_first[STK_WATCH_MOST_GPUS];
    int64_t numa_node[STK_WATCH_MOST_GPUS];
    stk_watch_gpu_label label[STK_WATCH_MOST_GPUS];
    char driver[96];                                 /* its version; "": not told */
    unsigned long long seen_us[STK_WATCH_MOST_GPUS]; /* of utilisation by process */
    int64_t listed_mb[STK_WATCH_MOST_GPUS];          /* memory in use when processes were last listed */
    unsigned adopted[STK_WATCH_MOST_GPUS][STK_WATCH_MOST_GPU_PROCESSES]; /* numbers of another name space, ended by 0 */
    nvml_result (*shutdown)(void);
    const char *(*error_text)(nvml_result);
#define X(name, symbol, parameters, what) nvml_result(*name) parameters;
    STK_WATCH_NVML_CALLS(X)
#undef X
} stk_watch_nvml;

/* Loads path, or the driver's own library where path is NULL. What is missing goes to facts; without a library or a
 * GPU n_gpus is 0. Errors: out of memory only. */
stk_status stk_watch_nvml_open(stk_watch_nvml *nvml, const char *path, const stk_watch_root *root,
                               stk_watch_facts *facts);
/* Fills sample->gpus, and holds_gpu of its processes. is_slow: calls that take long, too. */
stk_status stk_watch_nvml_read(stk_watch_nvml *nvml, bool is_slow, stk_watch_sample *sample, stk_watch_facts *facts);
void stk_watch_nvml_close(stk_watch_nvml *nvml);

#endif

/* See watch/dcgm.h. */
#include "watch/dcgm.h"

#include <inttypes.h>
#include <string.h>

#include "base/printable.h"

typedef struct dcgm_field {
    const char *name, *type, *help;
    double (*get)(const stk_watch_gpu *gpu); /* below 0: not told */
} dcgm_field;

static double free_memory(const stk_watch_gpu *g)
{
    return g->memory_mb >= 0 && g->memory_used_mb >= 0 ? (double)(g->memory_mb - g->memory_used_mb) : -1;
}

#define GET(field, scale)                                                                                              \
    static double get_##field(const stk_watch_gpu *g)                                                                  \
    {                                                                                                                  \
        return g->field < 0 ? -1 : (double)g->field * (scale);                                                         \
    }
GET(clock_mhz, 1)
GET(clock_most_mhz, 1)
GET(celsius, 1)
GET(power_mw, 1e-3)
GET(power_limit_mw, 1e-3)
GET(energy_mj, 1)
GET(busy_permille, 0.1)
GET(memory_busy_permille, 0.1)
GET(memory_mb, 1)
GET(memory_used_mb, 1)
GET(slowdown_mask, 1)
GET(pcie_sent_kbs, 1)
GET(pcie_received_kbs, 1)
GET(pcie_generation, 1)
GET(pcie_most_generation, 1)
GET(pcie_width, 1)
GET(pcie_most_width, 1)
GET(sm_permille, 1e-3)
GET(tensor_permille, 1e-3)
GET(dram_permille, 1e-3)
#undef GET

static const dcgm_field fields[] = {
    {"DCGM_FI_DEV_SM_CLOCK", "gauge", "Clock of the multiprocessors, MHz.", get_clock_mhz},
    {"DCGM_FI_DEV_MAX_SM_CLOCK", "gauge", "Highest clock of the multiprocessors, MHz.", get_clock_most_mhz},
    {"DCGM_FI_DEV_GPU_TEMP", "gauge", "Temperature, degrees Celsius.", get_celsius},
    {"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power, W.", get_power_mw},
    {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "Power that the driver allows, W.", get_power_limit_mw},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy since the driver was loaded, mJ.", get_energy_mj},
    {"DCGM_FI_DEV_GPU_UTIL", "gauge", "Time in which some kernel ran, per cent.", get_busy_permille},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Time in which memory was read or written, per cent.",
     get_memory_busy_permille},
    {"DCGM_FI_DEV_FB_TOTAL", "gauge", "Memory, MiB.", get_memory_mb},
    {"DCGM_FI_DEV_FB_USED", "gauge", "Memory in use, MiB.", get_memory_used_mb},
    {"DCGM_FI_DEV_FB_FREE", "gauge", "Memory that is free, MiB.", free_memory},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "gauge", "Why clocks are lower than they could be, a bit mask.",
     get_slowdown_mask},
    {"DCGM_FI_DEV_PCIE_TX_THROUGHPUT", "gauge", "Sent by PCIe, KB/s.", get_pcie_sent_kbs},
    {"DCGM_FI_DEV_PCIE_RX_THROUGHPUT", "gauge", "Received by PCIe, KB/s.", get_pcie_received_kbs},
    {"DCGM_FI_DEV_PCIE_LINK_GEN", "gauge", "Generation of the PCIe link.", get_pcie_generation},
    {"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "gauge", "Highest generation of the PCIe link.", get_pcie_most_generation},
    {"DCGM_FI_DEV_PCIE_LINK_WIDTH", "gauge", "Lanes of the PCIe link.", get_pcie_width},
    {"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "gauge", "Most lanes of the PCIe link.", get_pcie_most_width},
    {"DCGM_FI_PROF_SM_ACTIVE", "gauge", "Share of time in which a multiprocessor had work.", get_sm_permille},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Share of time in which tensor cores worked.", get_tensor_permille},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Share of time in which memory moved data.", get_dram_permille},
};

static void add_label(stk_text *out, const char *name, const char *value)
{
    stk_text_add(out, ",%s=\"", name);
    stk_text_add_quotable(out, value);
    stk_text_add(out, "\"");
}

static void add_number(stk_text *out, const dcgm_field *field, const stk_watch_gpu_label *label,
                       const stk_watch_gpu *gpu, const char *host)
{
    stk_text_add(out, "%s{gpu=\"%" PRId64 "\"", field->name, gpu->id);
    add_label(out, "UUID", label->uuid);
    add_label(out, "pci_bus_id", label->bus_id);
    stk_text_add(out, ",device=\"nvidia%" PRId64 "\"", gpu->id);
    add_label(out, "modelName", label->name);
    add_label(out, "Hostname", host);
    stk_text_add(out, "} %.15g\n", field->get(gpu));
}

void stk_watch_dcgm_add(stk_text *out, const stk_watch_gpu_label *label, int n_labels, const stk_watch_sample *sample,
                        const char *host)
{
    for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
        bool is_told = false;
        for (size_t i = 0; i < sample->gpus.n; i++) {
            const stk_watch_gpu *gpu = stk_watch_gpu_at(sample, i);
            if (gpu->id < 0 || gpu->id >= n_labels || fields[f].get(gpu) < 0) continue;
            if (!is_told)
                stk_text_add(out, "# HELP %s %s\n# TYPE %s %s\n", fields[f].name, fields[f].help, fields[f].name,
                             fields[f].type);
            is_told = true;
            add_number(out, &fields[f], &label[gpu->id], gpu, host);
        }
    }
}

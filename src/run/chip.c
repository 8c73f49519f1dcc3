#include "run/chip.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_SM = 1, MOST_CHIPS = 64 };

/* Of NVML's reference: only what is read here. */
typedef struct chip_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
} chip_pci;

typedef struct chip_memory {
    unsigned long long total, free, used; /* bytes */
} chip_memory;

#define CALLS(X)                                                                                                       \
    X(init, "nvmlInit_v2", (void))                                                                                     \
    X(shutdown, "nvmlShutdown", (void))                                                                                \
    X(count, "nvmlDeviceGetCount_v2", (unsigned *))                                                                    \
    X(handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned, void **))                                                    \
    X(pci, "nvmlDeviceGetPciInfo_v3", (void *, chip_pci *))                                                            \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption", (void *, unsigned long long *))                                   \
    X(memory, "nvmlDeviceGetMemoryInfo", (void *, chip_memory *))                                                      \
    X(clock, "nvmlDeviceGetClockInfo", (void *, int, unsigned *))                                                      \
    X(clock_most, "nvmlDeviceGetMaxClockInfo", (void *, int, unsigned *))                                              \
    X(slowed, "nvmlDeviceGetCurrentClocksThrottleReasons", (void *, unsigned long long *))

#define X(name, symbol, parameters) int(*name) parameters;
static struct {
    CALLS(X)
} calls; /* of the one library that is loaded */
#undef X

static bool load(stk_chip *chip, const char *path)
{
    chip->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!chip->library) return false;
    bool whole = true;
#define X(name, symbol, parameters) whole &= (*(void **)&calls.name = dlsym(chip->library, symbol)) != NULL;
    CALLS(X)
#undef X
    if (whole && calls.init() == 0) return true;
    dlclose(chip->library);
    chip->library = NULL;
    return false;
}

/* CUDA numbers chips in an order of its own: the place on the bus says which one is meant. */
static void find(stk_chip *chip, const char *bus)
{
    unsigned n = 0, domain, number, slot;
    if (sscanf(bus, "%x:%x:%x", &domain, &number, &slot) != 3 || calls.count(&n) != 0) return;
    for (unsigned i = 0; i < n && i < MOST_CHIPS && !chip->device; i++) {
        chip_pci pci = {0};
        void *device = NULL;
        if (calls.handle(i, &device) != 0 || calls.pci(device, &pci) != 0) continue;
        if (pci.domain == domain && pci.bus == number && pci.device == slot) chip->device = device;
    }
}

void stk_chip_open(stk_chip *chip, const char *bus, const char *path)
{
    const char *own = getenv("STOKER_NVML");
    *chip = (stk_chip){0};
    if (!bus[0] || !load(chip, path ? path : own && *own ? own : "libnvidia-ml.so.1")) return;
    find(chip, bus);
    if (!chip->device) return;
    if (calls.clock_most(chip->device, CLOCK_SM, &chip->most_mhz) != 0) chip->most_mhz = 0;
    stk_chip_look(chip);
}

void stk_chip_look(stk_chip *chip)
{
    unsigned long long mj, slowed;
    chip_memory memory = {0};
    unsigned mhz;
    if (!chip->device) return;
    if (calls.energy(chip->device, &mj) == 0) {
        if (!chip->first_mj) chip->first_mj = mj;
        chip->last_mj = mj;
    }
    if (calls.memory(chip->device, &memory) == 0 && memory.used > chip->most_memory_bytes)
        chip->most_memory_bytes = memory.used;
    if (calls.slowed(chip->device, &slowed) == 0) chip->slowed |= slowed;
    if (calls.clock(chip->device, CLOCK_SM, &mhz) != 0) return;
    chip->sum_mhz += mhz;
    if (chip->n_clocks++ == 0 || mhz < chip->least_mhz) chip->least_mhz = mhz;
}

void stk_chip_close(stk_chip *chip)
{
    if (chip->library) {
        calls.shutdown();
        dlclose(chip->library);
    }
    *chip = (stk_chip){0};
}

/* --- what was seen --- */

static json_t *reasons_of(uint64_t slowed)
{
    static const struct {
        uint64_t bit;
        const char *text;
    } known[] = {{0x4, "power limit"},
                 {0x8, "hardware"},
                 {0x20, "heat (software)"},
                 {0x40, "heat (hardware)"},
                 {0x80, "power supply brake"}};
    json_t *list = json_array();
    for (size_t i = 0; list && i < sizeof(known) / sizeof(known[0]); i++)
        if (slowed & known[i].bit) json_array_append_new(list, json_string(known[i].text));
    return list;
}

json_t *stk_chip_json(const stk_chip *chip, double n_samples)
{
    if (!chip->device) return NULL;
    json_t *object = json_object();
    const double joules = (double)(chip->last_mj - chip->first_mj) * 1e-3;
    if (chip->most_memory_bytes)
        json_object_set_new(object, "most_memory_bytes", json_integer((json_int_t)chip->most_memory_bytes));
    if (chip->first_mj) json_object_set_new(object, "joules", json_real(joules));
    if (chip->first_mj && n_samples > 0)
        json_object_set_new(object, "joules_per_sample", json_real(joules / n_samples));
    if (chip->n_clocks) {
        json_object_set_new(object, "mean_clock_hz", json_real(1e6 * chip->sum_mhz / (double)chip->n_clocks));
        json_object_set_new(object, "least_clock_hz", json_real(1e6 * chip->least_mhz));
    }
    if (chip->most_mhz) json_object_set_new(object, "most_clock_hz", json_real(1e6 * chip->most_mhz));
    json_object_set_new(object, "slowed_by", reasons_of(chip->slowed));
    return object;
}

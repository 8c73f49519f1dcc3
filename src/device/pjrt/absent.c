/* Chips that are not here, as "tpu:v5e:2x2": programs are compiled for them by libtpu, and not run. Nothing of libtpu
 * is needed before one is. Figures: cloud.google.com/tpu/docs/v5e, v5p, v6e and v4, of one chip.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "device/pjrt/pjrt.h"

typedef struct generation {
    const char *name;
    double flops_per_s, bytes_per_s; /* in bf16; of memory */
    int64_t memory_bytes;
} generation;

#define GIB ((int64_t)1 << 30)
static const generation generations[] = {
    {"v4", 275e12, 1228e9, 32 * GIB},
    {"v5e", 197e12, 819e9, 16 * GIB},
    {"v5p", 459e12, 2765e9, 95 * GIB},
    {"v6e", 918e12, 1640e9, 32 * GIB},
};

enum { MOST_TOPOLOGIES = 64, MOST_NAME = sizeof(((stk_device *)NULL)->absent) };
static struct {
    stk_mutex lock;
    char name[MOST_TOPOLOGIES][MOST_NAME]; /* guarded by lock */
    int n;                                 /* guarded by lock */
} asked;
static stk_once once = STK_ONCE_INIT;

static void make_lock(void)
{
    stk_mutex_init(&asked.lock);
}

static const generation *find_generation(const char *topology)
{
    size_t n = strcspn(topology, ":");
    for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
        if (strlen(generations[i].name) == n && !strncmp(generations[i].name, topology, n)) return &generations[i];
    return NULL;
}

/* 0: the name is none. */
int pjrt_count_absent(const char *topology)
{
    const char *p = strchr(topology, ':');
    long n = 1;
    if (!p || p == topology) return 0;
    for (int i = 0; i < 3; i++) {
        char *end;
        if (!isdigit((unsigned char)p[1])) return 0;
        long side = strtol(p + 1, &end, 10);
        if (side < 1 || side > 4096 || n > 65536 / side) return 0;
        n *= side;
        p = end;
        if (!*p) return (int)n;
        if (*p != 'x') return 0;
    }
    return 0;
}

void pjrt_describe_absent(const char *topology, stk_compiled_program *out)
{
    const generation *chip = find_generation(topology);
    if (!chip) return;
    out->memory_bytes = chip->memory_bytes;
    out->chip_flops_per_s = chip->flops_per_s;
    out->chip_bytes_per_s = chip->bytes_per_s;
}

stk_status pjrt_find_absent(const char *name, int *number)
{
    if (!pjrt_count_absent(name) || !find_generation(name) || strlen(name) >= MOST_NAME)
        return stk_fail(STK_NO_DEVICE,
                        "'%.60s' is no number of a TPU that is here, and no kind with a shape, as v5e:1x1, v6e:2x2 or "
                        "v5p:2x2x1; kinds: v4, v5e, v5p, v6e",
                        name);
    stk_once_run(&once, make_lock);
    stk_mutex_lock(&asked.lock);
    int i = 0;
    while (i < asked.n && strcmp(asked.name[i], name) != 0)
        i++;
    bool fits = i < MOST_TOPOLOGIES;
    if (fits && i == asked.n) snprintf(asked.name[asked.n++], MOST_NAME, "%s", name);
    stk_mutex_unlock(&asked.lock);
    if (!fits) return stk_fail(STK_UNSUPPORTED, "more than %d kinds of absent TPUs in one process", MOST_TOPOLOGIES);
    *number = -1 - i;
    return STK_OK;
}

stk_status pjrt_open_absent(const stk_device_class *class, int number, stk_device **out)
{
    static const pjrt_plugin nothing = {.path = "libtpu.so", .platform = "tpu"};
    pjrt_device *device = calloc(1, sizeof(*device));
    if (!device) return stk_fail_memory(sizeof(*device));
    device->base = (stk_device){.class = class, .n_threads = 1};
    device->plugin = &nothing;
    stk_mutex_lock(&asked.lock);
    snprintf(device->base.absent, sizeof(device->base.absent), "%s", asked.name[-1 - number]);
    stk_mutex_unlock(&asked.lock);
    *out = &device->base;
    return STK_OK;
}

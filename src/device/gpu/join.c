/* Neighbours in a list of launches that can be one: gpu.h, gpu_slots. */
#include <string.h>

#include "device/gpu/join.h"

/* What such a launch writes lies where its own slot read: nothing that the other one reads. */
static bool writes_own(const gpu_launch *launch, const gpu_argument *argument)
{
    for (int i = 0; i < launch->n_slot; i++) {
        bool found = launch->argument[i].kind != GPU_OUT;
        for (int j = 0; j < launch->n_slot && !found; j++)
            found = launch->argument[j].kind == GPU_IN && argument[j].address == argument[i].address;
        if (!found) return false;
    }
    return true;
}

/* Whether the launch reads what one of the used slots writes. */
static bool reads_written(const gpu_joined *to, const gpu_argument *argument, const gpu_argument *next)
{
    const gpu_launch *launch = to->launch;
    for (int i = 0; i < to->n_used * launch->n_slot; i++)
        for (int j = 0; j < launch->n_slot && launch->argument[i].kind == GPU_OUT; j++)
            if (launch->argument[j].kind == GPU_IN && next[j].address == argument[i].address) return true;
    return false;
}

static bool share(const gpu_launch *launch, const gpu_argument *a, const gpu_argument *b)
{
    for (int i = launch->n_slot * GPU_SLOTS; i < launch->n_arguments - 1; i++) {
        if (a[i].address != b[i].address || a[i].bytes != b[i].bytes) return false;
        if (a[i].bytes && memcmp(a[i].value, b[i].value, a[i].bytes) != 0) return false;
    }
    return true;
}

bool gpu_join(gpu_joined *to, gpu_bound_launch *into, gpu_argument *argument, const gpu_launch *launch,
              const gpu_bound_launch *next)
{
    const gpu_launch *first = to->launch;
    if (!first || first->n_slot == 0 || launch->unit != first->unit || strcmp(launch->kernel, first->kernel) != 0)
        return false;
    if (to->n_used == GPU_SLOTS || (uint64_t)into->n_groups[0] + next->n_groups[0] > INT32_MAX) return false;
    if (!writes_own(first, argument) || !writes_own(launch, next->argument)) return false;
    if (reads_written(to, argument, next->argument) || !share(first, argument, next->argument)) return false;
    gpu_argument *sizes = &argument[first->n_arguments - 1];
    const gpu_argument *size = &next->argument[first->n_arguments - 1];
    const size_t each = sizes->bytes / GPU_SLOTS;
    if (to->n_used == 1) memcpy(to->sizes, sizes->value, sizes->bytes);
    sizes->value = to->sizes;
    memcpy(to->sizes + (size_t)to->n_used * each, size->value, each);
    memcpy(argument + to->n_used * first->n_slot, next->argument, (size_t)first->n_slot * sizeof(*argument));
    into->n_groups[0] += next->n_groups[0];
    to->n_used++;
    return true;
}

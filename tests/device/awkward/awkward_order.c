/* Which work comes before which, by vector clocks: two accesses to the same memory, one of them a write, must be
 * ordered by a queue, an event or the host. What is not would be right on most days, and here fails each time.
 */
#include <stdlib.h>

#include "device/awkward/awkward.h"

void awkward_join(awkward_clock *clock, const awkward_clock *other)
{
    for (int i = 0; i < AWKWARD_MOST_QUEUES; i++)
        if (clock->n[i] < other->n[i]) clock->n[i] = other->n[i];
}

/* What the host has waited for is behind all work to come. */
static void forget_known(awkward_device *device)
{
    int n = 0;
    for (int i = 0; i < device->n_accesses; i++) {
        const awkward_access *a = &device->access[i];
        if (device->known->n[a->i_queue] < a->number) device->access[n++] = *a;
    }
    device->n_accesses = n;
}

void awkward_begin_work(awkward_device *device, int i_queue, awkward_clock *clock)
{
    awkward_join(clock, device->known);
    clock->n[i_queue]++;
    forget_known(device);
}

bool awkward_touch(awkward_device *device, int i_queue, const awkward_clock *clock, const void *p, size_t n,
                   bool writes)
{
    const char *from = p;
    awkward_access *again = NULL;
    for (int i = 0; i < device->n_accesses; i++) {
        awkward_access *a = &device->access[i];
        bool is_same = a->from < from + n && from < a->to;
        if (is_same && (writes || a->writes) && clock->n[a->i_queue] < a->number) return false;
        if (a->i_queue == i_queue && a->from == from && a->to == from + n && a->writes == writes) again = a;
    }
    if (again) {
        again->number = clock->n[i_queue];
        return true;
    }
    if (device->n_accesses == device->access_capacity) {
        int capacity = 2 * device->access_capacity + 64;
        awkward_access *grown = realloc(device->access, (size_t)capacity * sizeof(*grown));
        if (!grown) abort();
        device->access = grown;
        device->access_capacity = capacity;
    }
    device->access[device->n_accesses++] = (awkward_access){from, from + n, i_queue, clock->n[i_queue], writes};
    return true;
}

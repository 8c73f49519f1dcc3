/* How the trainer's loaders get their work done: by threads of their own, or by those that compute; and where their
 * batches lie.
 */
#include "base/thread.h"
#include "train/trainer_state.h"

static void run_on_device(void *user, int n_parts, void (*body)(const void *task, int i_part, int n_parts),
                          const void *task)
{
    const stk_device *device = user;
    device->class->parallel(device, n_parts, body, task);
}

static void *alloc_slot(void *user, size_t bytes)
{
    stk_device *device = user;
    void *p;
    return device->class->alloc_host(device, bytes, &p) == STK_OK ? p : NULL;
}

static void free_slot(void *user, void *p, size_t bytes)
{
    stk_device *device = user;
    device->class->free_host(device, p, bytes);
}

void stk_trainer_lend_threads(const stk_trainer *trainer, stk_loader_config *config)
{
    const stk_device *device = stk_engine_device(trainer->engine);
    config->n_threads = trainer->config.n_threads;
    if (device->class->alloc_host) { /* Batches are copied to the device fastest from here. */
        config->alloc = alloc_slot;
        config->free = free_slot;
        config->alloc_user = (void *)device;
    }
    /* Where computing takes all cores, a data thread that interrupts a part of a kernel costs all cores its time;
     * between two steps the same work costs each core its share. */
    if (!device->class->parallel || device->n_threads < stk_n_cores()) return;
    config->parallel = run_on_device;
    config->parallel_user = (void *)device;
}

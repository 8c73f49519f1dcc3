/* How the trainer's loaders get their work done: by threads of their own, or by those that compute. */
#include "base/thread.h"
#include "train/trainer_state.h"

static void run_on_device(void *user, int n_parts, void (*body)(const void *task, int i_part, int n_parts),
                          const void *task)
{
    const stk_device *device = user;
    device->class->parallel(device, n_parts, body, task);
}

void stk_trainer_lend_threads(const stk_trainer *trainer, stk_loader_config *config)
{
    const stk_device *device = stk_engine_device(trainer->engine);
    config->n_threads = trainer->config.n_threads;
    /* Where computing takes all cores, a data thread that interrupts a part of a kernel costs all cores its time;
     * between two steps the same work costs each core its share. */
    if (!device->class->parallel || device->n_threads < stk_n_cores()) return;
    config->parallel = run_on_device;
    config->parallel_user = (void *)device;
}

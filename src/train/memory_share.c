/* How a memory limit is shared. On a device on the host it is the process's: the step has what its plan says, a
 * checkpoint's copy what the variables take, the input pipeline what is left. On others it is the device's, and all for
 * the step.
 *
 *     limit  [ programs: variables, arena, lists | copy | data sets that are held | batches, workers ... ]
 *
 * Before the step is planned, the pipeline gets as much as it would like, a quarter of the limit at most, and if
 * nothing fits then, two batches and a worker. Small pipelines are part of what any process takes and cost the step
 * nothing.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/loader/inside.h"
#include "train/trainer_state.h"

/* Next to code and libraries; what any pipeline takes. */
#define UNCOUNTED_BYTES ((size_t)3 << 20)

enum { PIPELINE_SHARE = 4 };

static stk_status ask(const stk_trainer *trainer, const stk_dataset *dataset, stk_loader_memory *out)
{
    stk_loader_config config = stk_loader_config_default();
    size_t data = trainer->config.data_memory_bytes, all = trainer->config.memory_limit_bytes;
    config.memory_limit_bytes = data && data < all ? data : all;
    config.seed = trainer->config.seed;
    stk_trainer_lend_threads(trainer, &config);
    return stk_loader_need(dataset, &config, out);
}

/* Only there does the limit hold for the pipeline, too. */
static bool is_on_host(const stk_trainer *trainer)
{
    return stk_engine_device(trainer->engine)->class->on_host;
}

stk_status stk_memory_ask_device(stk_trainer *trainer)
{
    stk_trainer_config *config = &trainer->config;
    stk_device_memory memory;
    double share = config->memory_share;
    if (share == 0) return STK_OK;
    if (share != STK_MEMORY_FREE && !(share > 0 && share <= 1))
        return stk_fail(STK_INVALID, "a memory share of %g is not between 0 and 1", share);
    if (config->memory_limit_bytes)
        return stk_fail(STK_INVALID, "memory_limit_bytes and memory_share say the same twice: give one of them");
    STK_RETURN_IF_ERROR(stk_device_get_memory(stk_engine_device(trainer->engine), &memory));
    size_t bytes = share == STK_MEMORY_FREE ? memory.free : (size_t)((double)memory.total * share);
    config->memory_limit_bytes = bytes ? bytes : 1;
    config->memory_share = 0;
    return STK_OK;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t count(size_t bytes)
{
    return bytes > UNCOUNTED_BYTES ? bytes - UNCOUNTED_BYTES : 0;
}

stk_status stk_memory_ask_pipeline(stk_trainer *trainer, size_t *least, size_t *wanted)
{
    const stk_dataset *valid = trainer->config.valid;
    size_t limit = trainer->config.memory_limit_bytes, data = trainer->config.data_memory_bytes;
    stk_loader_memory train, other = {0};
    *least = *wanted = 0;
    if (!limit || !is_on_host(trainer)) return STK_OK;
    STK_RETURN_IF_ERROR(ask(trainer, trainer->dataset, &train));
    if (valid && stk_dataset_status(valid) == STK_OK) STK_RETURN_IF_ERROR(ask(trainer, valid, &other));
    /* Replicas of one process read the same data sets, and each has its part of the limit. */
    bool shares = trainer->is_replica || trainer->n_replicas;
    size_t n = shares ? (size_t)trainer->comm->n_ranks : 1;
    size_t held = (train.held_bytes + other.held_bytes + trainer->held_bytes + n - 1) / n;
    /* While a data set is evaluated on, the training loader may be closed to make room. */
    size_t need = most(train.least_bytes, other.least_bytes), like = train.wanted_bytes + other.wanted_bytes;
    if (data && like > data) like = data;
    if (like > limit / PIPELINE_SHARE) like = most(limit / PIPELINE_SHARE, need);
    *least = count(held + need);
    *wanted = count(held + like);
    trainer->data_bytes = held;
    return STK_OK;
}

size_t stk_trainer_step_limit(const stk_trainer *trainer)
{
    size_t limit = trainer->config.memory_limit_bytes, reserved = trainer->reserved_bytes;
    return !limit ? 0 : limit > reserved ? limit - reserved : 1;
}

size_t stk_trainer_planned(const stk_trainer *trainer)
{
    return trainer->planned_bytes;
}

void stk_trainer_count_copy(stk_trainer *trainer, size_t bytes)
{
    trainer->copy_bytes = bytes;
}

void stk_trainer_count_held(stk_trainer *trainer, size_t bytes)
{
    trainer->held_bytes = bytes;
}

void stk_memory_note_program(stk_trainer *trainer, const stk_program *program)
{
    stk_program_info info = stk_program_get_info(program);
    size_t all = info.arena_bytes + info.variable_bytes + info.packed_bytes + info.program_bytes + info.spread_bytes;
    if (all > trainer->planned_bytes) trainer->planned_bytes = all;
}

stk_status stk_memory_open_account(stk_trainer *trainer)
{
    size_t limit = trainer->config.memory_limit_bytes, data = trainer->config.data_memory_bytes;
    size_t used = trainer->planned_bytes + trainer->copy_bytes, held = trainer->data_bytes;
    if (!limit || !is_on_host(trainer)) return stk_memory_new(data, &trainer->data_memory);
    /* Evaluation may need more than the step: where nothing is reserved, half of what is left is enough for both. */
    size_t left = trainer->reserved_bytes ? trainer->reserved_bytes : limit > used ? (limit - used) / 2 : 1;
    left = left + UNCOUNTED_BYTES > held ? left + UNCOUNTED_BYTES - held : 1;
    if (data && data < left) return stk_memory_new(data, &trainer->data_memory);
    return stk_memory_new_beside(left, &trainer->data_memory);
}

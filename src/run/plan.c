/* Plans of a run's training step. See stoker/observe/plan.h. */
#include <string.h>

#include "base/error.h"
#include "engine/breakdown.h"
#include "engine/whole.h"
#include "recipe/build.h"
#include "run/ahead.h"
#include "run/ranks.h"
#include "run/state.h"
#include "train/pixels.h"
#include "train/precision.h"
#include "train/replicas.h"
#include "train/trainer_state.h"

stk_status stk_run_measure(stk_run *run, stk_device_speed *out)
{
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    stk_device_config config = {.n_threads = (int)run->recipe->max_threads};
    /* What `auto` becomes is known once a program was built. */
    bool is_bf16 = run->trainer->compute == STK_BF16 || run->recipe->precision == STK_PRECISION_BF16;
    return stk_measure_speed(run->recipe->device, &config, is_bf16 ? STK_BF16 : STK_F32, out);
}

static stk_status set_precision(stk_trainer *trainer, const char *name)
{
    static const stk_precision all[] = {STK_PRECISION_F32, STK_PRECISION_TF32, STK_PRECISION_BF16, STK_PRECISION_F16};
    for (int i = 0; name && i < 4; i++)
        if (!strcmp(stk_precision_name(all[i]), name)) {
            trainer->config.precision = all[i];
            return STK_OK;
        }
    return name ? stk_fail(STK_INVALID, "no precision '%s'; there are f32, tf32, bf16 and f16", name) : STK_OK;
}

/* Another configuration than the first one's has let go of the replicas, and has the whole limit again. */
static stk_status open_trainer(stk_trainer *trainer)
{
    bool was_open = trainer->engine != NULL;
    STK_RETURN_IF_ERROR(stk_trainer_open(trainer));
    if (!was_open) return STK_OK;
    STK_RETURN_IF_ERROR(stk_replicas_begin(trainer));
    stk_replicas_divide_memory(trainer);
    return STK_OK;
}

static stk_status plan(stk_trainer *trainer, int64_t batch, const stk_device_speed *speed, stk_memory_plan *out)
{
    stk_program *program = NULL;
    stk_memory_choice choice;
    stk_status status;
    size_t least;
    STK_RETURN_IF_ERROR(open_trainer(trainer));
    int n_replicas = stk_comm_n_ranks(trainer->comm);
    if (batch % n_replicas != 0)
        return stk_fail(STK_INVALID, "a batch of %lld cannot be shared by %d replicas", (long long)batch, n_replicas);
    batch /= n_replicas;
    STK_RETURN_IF_ERROR(stk_trainer_choose_precision(trainer));
    STK_RETURN_IF_ERROR(stk_trainer_choose_fed(trainer));
    STK_RETURN_IF_ERROR(stk_memory_choose(trainer, batch, &choice));
    STK_RETURN_IF_ERROR(stk_step_compile_with(trainer, batch, choice.micro, STK_STEP_PLAN, &program));
    STK_TRY(stk_program_break_down(program, out));
    stk_rank_calls calls = stk_program_rank_calls(program);
    out->n_replicas = n_replicas;
    out->n_sums = calls.n_calls;
    out->sum_bytes = calls.bytes;
    out->compute = trainer->compute;
    out->tf32 = trainer->tf32;
    out->batch = batch;
    out->micro_batch = choice.micro;
    out->slowdown = choice.slowdown;
    out->n_fewest = choice.n_fewest;
    out->fewest_slowdown = choice.fewest_slowdown;
    out->pipeline_bytes = trainer->reserved_bytes;
    if (!out->pipeline_bytes) STK_TRY(stk_memory_ask_pipeline(trainer, &least, &out->pipeline_bytes));
    if (speed) out->expected_s = stk_program_expect_s(program, speed);
    out->is_compiled = stk_engine_device(trainer->engine)->class->compiles_steps;
done:
    stk_engine_discard(trainer->engine, program);
    return status;
}

static stk_trainer_config make_config(stk_run *run, const stk_plan_request *request)
{
    stk_trainer_config config = stk_run_config(run);
    if (request->unlimited) {
        config.memory_limit_bytes = 0;
        config.memory_share = 0;
    }
    config.n_replicas = stk_run_replicas(run);
    if (request->dump) stk_run_dump(run, &config);
    return config;
}

stk_status stk_run_plan(stk_run *run, const stk_plan_request *request, stk_memory_plan *out)
{
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    stk_trainer_config config = make_config(run, request);
    *out = (stk_memory_plan){0};
    stk_trainer_configure(run->trainer, &config);
    STK_RETURN_IF_ERROR(set_precision(run->trainer, request->precision));
    STK_RETURN_IF_ERROR(
        plan(run->trainer, request->batch > 0 ? request->batch : run->recipe->batch, request->speed, out));
    out->checkpoint_copy_bytes =
        stk_run_copy_bytes(run->recipe, stk_trainer_step_limit(run->trainer), out->peak_bytes + out->program_bytes,
                           out->peak_bytes - out->arena_bytes - out->packed_bytes);
    return STK_OK;
}

/* --- for chips that are not here --- */

stk_status stk_run_is_ahead(stk_run *run, bool *out)
{
    static const stk_plan_request plain = {.batch = 0};
    if (!out) return stk_fail(STK_INVALID, "there is no place for the answer");
    *out = false;
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    if (!run->trainer->engine) {
        stk_trainer_config config = make_config(run, &plain);
        stk_trainer_configure(run->trainer, &config);
        STK_RETURN_IF_ERROR(stk_trainer_open(run->trainer));
    }
    *out = stk_engine_device(run->trainer->engine)->absent[0] != 0;
    return STK_OK;
}

stk_status stk_run_compile_ahead(stk_run *run, const stk_plan_request *request, int64_t *batch, stk_program **out)
{
    stk_trainer *trainer = run->trainer;
    stk_trainer_config config = make_config(run, request);
    stk_memory_choice choice;
    stk_trainer_configure(trainer, &config);
    STK_RETURN_IF_ERROR(set_precision(trainer, request->precision));
    STK_RETURN_IF_ERROR(open_trainer(trainer));
    const stk_device *device = stk_engine_device(trainer->engine);
    if (!device->class->compiles_steps)
        return stk_fail(STK_UNSUPPORTED, "the device '%s' compiles no whole steps", device->class->name);
    int n_replicas = stk_comm_n_ranks(trainer->comm);
    *batch = request->batch > 0 ? request->batch : run->recipe->batch;
    if (*batch % n_replicas != 0)
        return stk_fail(STK_INVALID, "a batch of %lld cannot be shared by %d replicas", (long long)*batch, n_replicas);
    *batch /= n_replicas;
    STK_RETURN_IF_ERROR(stk_trainer_choose_precision(trainer));
    STK_RETURN_IF_ERROR(stk_trainer_choose_fed(trainer));
    STK_RETURN_IF_ERROR(stk_memory_choose(trainer, *batch, &choice));
    return stk_step_compile_with(trainer, *batch, choice.micro, STK_STEP_RUN, out);
}

stk_status stk_run_plan_compiled(stk_run *run, const stk_plan_request *request, stk_compiled_plan *out)
{
    stk_program *program = NULL;
    stk_compiled_program c;
    stk_status status = STK_OK;
    if (!out) return stk_fail(STK_INVALID, "there is no place for the plan");
    *out = (stk_compiled_plan){.n_chips = 1};
    if (!run || !request) return stk_fail(STK_INVALID, "there is no run, or nothing is asked");
    STK_TRY(stk_run_compile_ahead(run, request, &out->batch, &program));
    STK_TRY(stk_program_analyse(program, &c));
    STK_TRY(stk_program_read_tiles(program, out));
    memcpy(out->chip, c.chip, sizeof(out->chip));
    out->precision = run->trainer->result.precision;
    out->n_chips = c.n_chips;
    out->memory_bytes = c.memory_bytes;
    out->argument_bytes = c.argument_bytes;
    out->result_bytes = c.result_bytes;
    out->scratch_bytes = c.scratch_bytes;
    out->code_bytes = c.code_bytes;
    out->flops = c.flops;
    out->bytes = c.bytes;
    out->compile_ns = c.compile_ns;
    out->fed_bytes = (int64_t)stk_program_fed_bytes(program);
    if (c.chip_flops_per_s > 0) out->arithmetic_s = c.flops / c.chip_flops_per_s;
    if (c.chip_bytes_per_s > 0) out->traffic_s = c.bytes / c.chip_bytes_per_s;
done:
    stk_engine_discard(run->trainer->engine, program);
    return status;
}

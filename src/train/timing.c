/* See train/timing.h. */
#include "train/timing.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/profile.h"
#include "events/trace_file.h"
#include "train/trainer_state.h"

static bool is_on_host(const stk_trainer *trainer)
{
    return stk_engine_device(trainer->engine)->class->on_host;
}

/* --- traces --- */

static stk_status start_trace(stk_trainer *trainer)
{
    stk_timing *t = &trainer->timing;
    int64_t first = trainer->config.trace_first;
    if (!trainer->config.trace || t->is_tracing || t->has_traced) return STK_OK;
    int64_t step = trainer->state.step + 1;
    if (step < first || step > trainer->config.trace_last) return STK_OK;
    stk_trace_start();
    t->is_tracing = true;
    return STK_OK;
}

static void warn(stk_trainer *trainer, const char *text)
{
    stk_train_event event = {.kind = STK_EVENT_WARNING, .text = text};
    stk_trainer_emit(trainer, &event);
}

static void write_trace(stk_trainer *trainer)
{
    char text[700];
    stk_text device = {0};
    const stk_device *d = stk_engine_device(trainer->engine);
    int64_t n_lost;
    stk_trace_stop();
    trainer->timing.is_tracing = false;
    trainer->timing.has_traced = true;
    stk_text_add(&device, "%s (", d->class->name);
    d->class->describe(d, &device);
    stk_text_add(&device, ")");
    stk_trace_info info = {stk_text_get(&device), (int64_t)stk_machine_memory(false)};
    stk_status status = stk_trace_write(trainer->config.trace, &info, &n_lost);
    if (status != STK_OK) {
        snprintf(text, sizeof(text), "no trace: %.600s; the run goes on", stk_error_text());
        warn(trainer, text);
    } else {
        stk_train_event event = {.kind = STK_EVENT_TRACED, .text = trainer->config.trace};
        stk_trainer_emit(trainer, &event);
    }
    if (status == STK_OK && n_lost > 0) {
        snprintf(text, sizeof(text),
                 "%lld events of the trace were more than there is room for, and the oldest are lost: "
                 "trace fewer steps",
                 (long long)n_lost);
        warn(trainer, text);
    }
    stk_text_free(&device);
}

/* --- steps --- */

stk_status stk_timing_begin(stk_trainer *trainer)
{
    stk_timing *t = &trainer->timing;
    const stk_trace_kernel *about;
    int n;
    if (t->off) {
        t->is_profiled = false;
        stk_program_trace(trainer->train.program, false);
        return STK_OK;
    }
    t->step_begin_ns = stk_clock_ns();
    t->in_step = true;
    STK_RETURN_IF_ERROR(start_trace(trainer));
    t->trace_begin_ns = stk_trace_begin();
    /* A device that is not on the host would have to wait for each kernel: only a trace is worth that, and of ranks
     * there, which launch together, the first one alone is traced. */
    t->is_profiled =
        is_on_host(trainer) ? t->is_tracing || t->n_steps % STK_PROFILED_EVERY == 3 : t->is_tracing && !trainer->comm;
    if (t->is_tracing) STK_RETURN_IF_ERROR(stk_program_get_about(trainer->train.program, &about, &n));
    stk_program_trace(trainer->train.program, t->is_profiled);
    return STK_OK;
}

static void add_slice(int64_t from_ns, int64_t to_ns, stk_trace_kind kind, const char *name, int64_t value)
{
    stk_trace_event event = {.begin_ns = from_ns, .end_ns = to_ns, .name = name, .value = value, .kind = kind};
    if (stk_trace_on()) stk_trace_add(&event);
}

void stk_timing_add_wait(stk_trainer *trainer, int64_t from_ns, int64_t to_ns)
{
    if (trainer->timing.off) return;
    trainer->timing.wait_ns += to_ns - from_ns;
    add_slice(from_ns, to_ns, STK_TRACE_INPUT, "wait for a batch", trainer->state.step + 1);
}

void stk_timing_add_run(stk_trainer *trainer, int64_t from_ns, int64_t to_ns, int64_t device_ns)
{
    if (trainer->timing.off) return;
    trainer->timing.run_ns += to_ns - from_ns - device_ns;
    trainer->timing.result_ns += device_ns;
    if (trainer->timing.is_profiled) trainer->timing.profiled_run_ns += to_ns - from_ns;
    add_slice(from_ns, to_ns, STK_TRACE_HOST, "training step", trainer->state.step + 1);
}

void stk_timing_add_result(stk_trainer *trainer, int64_t from_ns, int64_t to_ns)
{
    if (!is_on_host(trainer)) trainer->timing.result_ns += to_ns - from_ns;
}

void stk_timing_end(stk_trainer *trainer)
{
    stk_timing *t = &trainer->timing;
    t->n_steps++;
    if (t->off) return;
    stk_trace_end(t->trace_begin_ns, STK_TRACE_STEP, "step", trainer->state.step);
    t->loop_ns += stk_clock_ns() - t->step_begin_ns;
    t->in_step = false;
    if (t->is_tracing && trainer->state.step >= trainer->config.trace_last) write_trace(trainer);
}

void stk_timing_finish(stk_trainer *trainer)
{
    if (trainer->timing.is_tracing) write_trace(trainer);
}

stk_time_shares stk_timing_get_shares(const stk_trainer *trainer)
{
    const stk_timing *t = &trainer->timing;
    int64_t under_way_ns = t->in_step ? stk_clock_ns() - t->step_begin_ns : 0;
    double loop = (double)(t->loop_ns + under_way_ns), run = (double)t->run_ns, wait = (double)t->wait_ns;
    double ranks = 0;
    if (!(loop > 0)) return (stk_time_shares){0};
    double kernels = is_on_host(trainer) ? run : (double)t->result_ns;
    if (is_on_host(trainer) && t->profiled_run_ns > 0)
        kernels = run * (double)stk_program_kernels_ns(trainer->train.program) / (double)t->profiled_run_ns;
    if (trainer->comm && t->profiled_run_ns > 0)
        ranks = run * (double)stk_program_ranks_ns(trainer->train.program) / (double)t->profiled_run_ns;
    double launch = is_on_host(trainer) ? run - kernels : run;
    double host = loop - wait - launch - kernels;
    return (stk_time_shares){.input = wait / loop,
                             .host = host > 0 ? host / loop : 0,
                             .launch = launch > 0 ? launch / loop : 0,
                             .communication = ranks / loop,
                             .compute = (kernels - ranks) / loop};
}

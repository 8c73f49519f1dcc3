/* The training loop: take a batch, begin the step, read the numbers of a step before it, tell those who asked.
 *
 * On the host a step is done when it has begun. On other devices the loop stays stk_engine_runs_ahead steps ahead of
 * the results that it has read, so that the device never waits for it; it settles (reads all results) where parameters
 * and state have to agree.
 *
 * The loop itself holds no state that a checkpoint would not keep: stk_train_state says where the run stands, and the
 * loader is opened there. An epoch whose last batch is done but whose validation is not (i_batch == n_batches) is
 * finished first when resuming.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "data/loader/skip_list.h"
#include "train/divided.h"
#include "train/nan_guard.h"
#include "train/outer.h"
#include "train/precision.h"
#include "train/replicas.h"
#include "train/shapes.h"
#include "train/trainer_state.h"
#include "train/whiten.h"

void stk_trainer_emit(stk_trainer *trainer, stk_train_event *event)
{
    if (trainer->config.on_event) trainer->config.on_event(trainer->config.event_user, event);
}

static stk_metrics epoch_metrics(const stk_trainer *trainer)
{
    const stk_train_state *state = &trainer->state;
    double n = state->epoch_samples > 0 ? (double)state->epoch_samples : 1;
    double weight = state->epoch_weight > 0 ? state->epoch_weight : 1;
    stk_metrics m = {
        .loss = state->epoch_loss_sum / weight, .accuracy = -1, .top5 = -1, .n_samples = state->epoch_samples};
    if (trainer->has_classes) {
        m.accuracy = state->epoch_correct / n;
        if (trainer->has_top5) m.top5 = state->epoch_top5 / n;
    }
    if (trainer->is_language_model) m.perplexity = exp(m.loss);
    if (state->epoch_samples > 0) stk_measures_finish(trainer, trainer->train_sums, &m);
    return m;
}

static stk_train_event make_event(const stk_trainer *trainer, stk_train_event_kind kind)
{
    int64_t epoch_ns = stk_clock_ns() - trainer->epoch_start_ns;
    const stk_train_state *state = &trainer->state;
    stk_train_event event = {.kind = kind,
                             .step = state->step,
                             .n_steps = trainer->n_steps,
                             .epoch = state->epoch + 1,
                             .n_epochs = trainer->n_epochs,
                             .i_batch = state->i_batch,
                             .n_batches = trainer->n_batches,
                             .lr = (double)trainer->lr,
                             .loss_scale = trainer->result.loss_scale,
                             .n_skipped_steps = trainer->result.n_skipped_steps,
                             .grad_norm = -1,
                             .train = epoch_metrics(trainer),
                             .epoch_s = (double)epoch_ns * 1e-9,
                             .peak_planned_bytes = trainer->result.peak_planned_bytes};
    if (trainer->smooth_step_s > 0)
        event.samples_per_s = (double)stk_trainer_step_rows(trainer) / trainer->smooth_step_s;
    if (epoch_ns > 0) event.input_wait_share = (double)trainer->epoch_wait_ns / (double)epoch_ns;
    event.time = stk_timing_get_shares(trainer);
    event.device_busy_share = -1;
    if (epoch_ns > 0 && stk_engine_device(trainer->engine)->class->on_host)
        event.device_busy_share = (double)trainer->epoch_run_ns / (double)epoch_ns;
    event.left_s = (double)(trainer->n_steps - state->step) * trainer->smooth_step_s;
    return event;
}

stk_status stk_trainer_open_loader(stk_trainer *trainer, const stk_dataset *dataset, stk_loader_config config,
                                   stk_loader **out)
{
    if (!trainer->data_memory) STK_RETURN_IF_ERROR(stk_memory_open_account(trainer));
    config.memory = trainer->data_memory;
    config.seed = trainer->config.seed;
    config.low_priority = true;
    stk_trainer_lend_threads(trainer, &config);
    stk_status status = stk_loader_open(dataset, &config, out);
    if (status != STK_NO_MEMORY || !trainer->loader) return status;
    /* The training loader makes room, and is opened again where it stood when the next step wants it. */
    stk_trainer_keep_skipped(trainer, trainer->loader);
    stk_loader_close(trainer->loader);
    trainer->loader = NULL;
    return stk_loader_open(dataset, &config, out);
}

static stk_status open_loader(stk_trainer *trainer)
{
    stk_loader_config config = stk_loader_config_default();
    if (trainer->loader) return STK_OK;
    config.i_epoch = trainer->state.epoch;
    config.i_batch = trainer->state.i_batch;
    if (config.i_batch == trainer->n_batches) {
        config.i_epoch++;
        config.i_batch = 0;
    }
    config.n_epochs = trainer->n_epochs - config.i_epoch;
    if (config.n_epochs < 1) return STK_OK;
    if (trainer->comm) {
        config.n_shards = trainer->comm->n_ranks;
        config.i_shard = trainer->comm->rank;
        config.shards_together = true;
    }
    return stk_trainer_open_loader(trainer, stk_trainer_batches_of(trainer), config, &trainer->loader);
}

void stk_trainer_keep_loader(stk_trainer *trainer, const stk_loader *loader)
{
    stk_loader_get_stats(loader, &trainer->loader_stats);
    trainer->n_stages = stk_loader_get_stages(loader, trainer->stage, STK_MOST_KEPT_STAGES);
}

void stk_trainer_keep_skipped(stk_trainer *trainer, const stk_loader *loader)
{
    stk_loader_stats stats;
    int64_t n;
    if (!loader) return;
    stk_loader_get_stats(loader, &stats);
    const int64_t *key = stk_loader_skipped_keys(loader, &n);
    for (int64_t i = 0; i < n; i++)
        stk_skipped_add_key(&trainer->skipped, key[i]);
    if (loader == trainer->loader) {
        trainer->result.n_data_threads = stats.n_active_threads;
        stk_trainer_keep_loader(trainer, loader);
    }
    for (int64_t i = 0; stk_loader_skipped(loader, i); i++)
        stk_skipped_add_text(&trainer->skipped, stk_loader_skipped(loader, i));
}

static void note_step_time(stk_trainer *trainer)
{
    int64_t now = stk_clock_ns();
    double s = (double)(now - trainer->step_start_ns) * 1e-9;
    trainer->train_ns += now - trainer->step_start_ns;
    trainer->step_start_ns = now;
    trainer->last_step_s = s;
    trainer->step_s[trainer->n_step_times++ % N_STEP_TIMES] = (float)s;
    /* The first steps make primitives warm; after that a slow average keeps the display steady. */
    trainer->smooth_step_s = trainer->n_step_times <= 3 ? s : trainer->smooth_step_s * 0.95 + s * 0.05;
}

static stk_status explain_no_batch(const stk_trainer *trainer)
{
    stk_status lost = stk_loader_status(trainer->loader);
    if (lost == STK_CORRUPT && trainer->dataset->on_error == STK_ON_ERROR_STOP)
        stk_fail(lost, "%s; data.train.on_error: replace puts another in its place", stk_error_text());
    if (lost != STK_OK) return lost;
    return stk_fail(STK_INTERNAL, "the data ended before the run");
}

static bool wants_state(const stk_trainer *trainer, int64_t step)
{
    return trainer->hooks.wants_state && trainer->hooks.wants_state(trainer->hooks.user, step);
}

/* Enqueues the step on the batch, and waits until the batch has been read; a device that is still busy with an earlier
 * step is waited for as its results are. */
static stk_status run_step(stk_trainer *trainer, const stk_batch *batch, double rate)
{
    stk_program *program;
    int64_t begun = stk_clock_ns();
    STK_RETURN_IF_ERROR(stk_shapes_pick_train(trainer, batch));
    trainer->wishes_state = trainer->shards && wants_state(trainer, trainer->state.step + 1);
    STK_RETURN_IF_ERROR(stk_step_set(trainer, &trainer->train, trainer->state.step, rate));
    stk_step_bind(&trainer->train, batch);
    program = trainer->train.program;
    stk_status status = stk_program_run(program);
    trainer->is_torn = status != STK_OK && stk_program_is_torn(program);
    STK_RETURN_IF_ERROR(status);
    int64_t enqueued = stk_clock_ns();
    STK_RETURN_IF_ERROR(stk_program_wait_earlier(program));
    int64_t waited = stk_clock_ns();
    STK_RETURN_IF_ERROR(stk_program_wait_inputs(program));
    int64_t done = stk_clock_ns();
    trainer->epoch_run_ns += done - begun;
    stk_timing_add_run(trainer, begun, done, waited - enqueued);
    return STK_OK;
}

static double scale_rate(const stk_trainer *trainer)
{
    double n = stk_comm_n_ranks(trainer->comm);
    stk_lr_scaling how = trainer->config.lr_scaling;
    return how == STK_LR_SCALING_LINEAR ? n : how == STK_LR_SCALING_SQRT ? sqrt(n) : 1;
}

static stk_status begin_step(stk_trainer *trainer)
{
    stk_train_state *state = &trainer->state;
    STK_RETURN_IF_ERROR(stk_timing_begin(trainer));
    int64_t start = trainer->step_start_ns = stk_clock_ns();
    STK_RETURN_IF_ERROR(open_loader(trainer));
    stk_beat_phase(trainer->beat, STK_PHASE_data);
    const stk_batch *batch = stk_loader_next(trainer->loader);
    stk_beat_phase(trainer->beat, STK_PHASE_step);
    int64_t ready = stk_clock_ns();
    if (!batch) return explain_no_batch(trainer);
    stk_timing_add_wait(trainer, start, ready);
    if (trainer->hooks.on_batch) trainer->hooks.on_batch(trainer->hooks.user, batch);
    double rate = stk_schedule_rate(&trainer->config.schedule, trainer->optimizer.lr, state->step, trainer->n_steps,
                                    trainer->n_batches);
    stk_status status = run_step(trainer, batch, rate * scale_rate(trainer));
    stk_batch_release(batch);
    STK_RETURN_IF_ERROR(status);
    state->step++;
    state->i_batch++;
    stk_beat_step(trainer->beat, state->step);
    trainer->begun[trainer->n_begun++] = (stk_begun_step){state->step, state->i_batch, rate * scale_rate(trainer)};
    trainer->last_wait_s = (double)(ready - start) * 1e-9;
    trainer->epoch_wait_ns += ready - start;
    trainer->wait_ns += ready - start;
    return STK_OK;
}

static void count_batch(stk_trainer *trainer, double loss)
{
    stk_train_state *state = &trainer->state;
    bool is_weighted = stk_model_get_loss_weight(trainer->model).id >= 0;
    double weight =
        is_weighted ? stk_step_scalar(&trainer->train, "loss_weight") : (double)stk_trainer_step_rows(trainer);
    state->epoch_loss_sum += loss * weight;
    state->epoch_weight += weight;
    state->epoch_correct += stk_step_scalar(&trainer->train, "n_correct");
    state->epoch_top5 += stk_step_scalar(&trainer->train, "n_top5");
    state->epoch_samples += stk_trainer_step_rows(trainer);
    trainer->n_rows += stk_trainer_step_rows(trainer);
    stk_measures_add(trainer, &trainer->train, trainer->train_sums);
}

/* What a step's program has left of it. */
typedef struct step_results {
    stk_begun_step done;
    double loss, grad_norm;
    bool wishes_state;
} step_results;

/* Reads the results of the oldest step begun into the state. */
static stk_status read_step(stk_trainer *trainer, step_results *out)
{
    int64_t begin = stk_clock_ns();
    STK_RETURN_IF_ERROR(stk_program_wait(trainer->train.program, trainer->n_begun - 1));
    stk_timing_add_result(trainer, begin, stk_clock_ns());
    out->done = trainer->begun[0];
    trainer->lr = (float)out->done.lr;
    trainer->n_begun--;
    memmove(trainer->begun, trainer->begun + 1, (size_t)trainer->n_begun * sizeof(*trainer->begun));
    double loss = out->loss = stk_step_scalar(&trainer->train, "loss");
    if (trainer->config.grad_norm || trainer->config.clip_norm > 0)
        out->grad_norm = stk_step_scalar(&trainer->train, "grad_norm");
    out->wishes_state = stk_step_scalar(&trainer->train, STK_WISH_INPUT) > 0;
    if (stk_nan_counts(trainer, loss)) count_batch(trainer, loss);
    if (trainer->comm && stk_step_scalar(&trainer->train, STK_STOP_INPUT) > 0) trainer->stop_agreed = true;
    note_step_time(trainer);
    if (trainer->result.first_step_s == 0) trainer->result.first_step_s = stk_process_age_s();
    stk_status judged = stk_trainer_watch_scale(trainer, out->done.step, loss);
    if (judged == STK_OK) judged = stk_nan_watch(trainer, out->done.step, loss, out->done.lr);
    /* The first rank judges for all: where it stops, it tells the others, which wait for it in the next step. */
    return trainer->comm && trainer->comm->rank > 0 ? STK_OK : judged;
}

/* Reads steps until at most n are begun and not read, and tells of each. An outer step comes once all are read, since
 * its program has the same arena, and before anyone is told of its step, who may want the state. */
static stk_status read_steps(stk_trainer *trainer, int n)
{
    while (trainer->n_begun > n) {
        step_results results = {.grad_norm = -1};
        STK_RETURN_IF_ERROR(read_step(trainer, &results));
        if (trainer->n_begun == 0) STK_RETURN_IF_ERROR(stk_outer_step(trainer));
        stk_train_event event = make_event(trainer, STK_EVENT_STEP);
        event.step = results.done.step;
        event.i_batch = results.done.i_batch;
        event.loss = results.loss;
        event.step_s = trainer->last_step_s;
        event.wait_s = trainer->last_wait_s;
        event.grad_norm = results.grad_norm;
        stk_trainer_emit(trainer, &event);
        if (results.wishes_state) STK_RETURN_IF_ERROR(stk_divided_open(trainer));
        stk_status status =
            trainer->hooks.after_step ? trainer->hooks.after_step(trainer->hooks.user, trainer, &event) : STK_OK;
        STK_RETURN_IF_ERROR(stk_divided_close(trainer, status));
    }
    return STK_OK;
}

/* How many steps may stay unread behind the one just begun. */
static int steps_ahead(const stk_trainer *trainer)
{
    const stk_train_state *state = &trainer->state;
    bool wanted = wants_state(trainer, state->step);
    bool is_last = trainer->config.max_steps > 0 && state->step >= trainer->config.max_steps;
    if (wanted || is_last || trainer->shapes.varies || stk_outer_is_due(trainer)) return 0;
    if (state->i_batch == trainer->n_batches) return 0;
    /* Ranks agree by what they read, and only the first one knows where a state is wanted. */
    if (trainer->comm) return 0;
    return stk_engine_runs_ahead(trainer->engine);
}

static void begin_epoch(stk_trainer *trainer)
{
    trainer->epoch_start_ns = stk_clock_ns();
    trainer->epoch_wait_ns = trainer->epoch_run_ns = 0;
}

/* Validation, the event, and the step into the next epoch. */
static stk_status end_epoch(stk_trainer *trainer)
{
    stk_train_state *state = &trainer->state;
    stk_train_event event = make_event(trainer, STK_EVENT_EPOCH);
    bool improved = false;
    event.loss = event.train.loss;
    trainer->result.train = event.train;
    stk_beat_say(trainer->beat, "epoch %lld of %lld is over at step %lld, loss %.5g", (long long)event.epoch,
                 (long long)event.n_epochs, (long long)event.step, event.loss);
    if (trainer->config.valid) {
        STK_RETURN_IF_ERROR(stk_evaluate_rank(trainer, trainer->config.valid, &event.valid));
        trainer->result.valid = event.valid;
        improved = stk_judge(trainer, &event.valid);
    }
    state->epoch++;
    state->i_batch = 0;
    state->epoch_loss_sum = state->epoch_weight = state->epoch_correct = state->epoch_top5 = 0;
    state->epoch_samples = 0;
    stk_measures_reset(trainer, trainer->train_sums);
    trainer->result.n_epochs = state->epoch;
    stk_trainer_emit(trainer, &event);
    STK_RETURN_IF_ERROR(stk_divided_open(trainer));
    stk_status status = trainer->hooks.after_epoch
                            ? trainer->hooks.after_epoch(trainer->hooks.user, trainer, &event, improved)
                            : STK_OK;
    STK_RETURN_IF_ERROR(stk_divided_close(trainer, status));
    begin_epoch(trainer);
    return STK_OK;
}

static bool is_done(const stk_trainer *trainer)
{
    const stk_trainer_config *config = &trainer->config;
    const stk_train_state *state = &trainer->state;
    if (state->epoch >= trainer->n_epochs) return true;
    if (config->max_steps > 0 && state->step >= config->max_steps) return true;
    return config->patience > 0 && state->n_bad_epochs >= config->patience;
}

static stk_status train_on(stk_trainer *trainer)
{
    stk_train_state *state = &trainer->state;
    begin_epoch(trainer);
    trainer->result.n_epochs = state->epoch;
    while (!is_done(trainer)) {
        if (state->i_batch == trainer->n_batches) {
            STK_RETURN_IF_ERROR(end_epoch(trainer));
            continue;
        }
        if (trainer->comm ? trainer->stop_agreed : trainer->stop) {
            STK_RETURN_IF_ERROR(read_steps(trainer, 0));
            return stk_fail(STK_INTERRUPTED, "stopped after step %lld", (long long)state->step);
        }
        STK_RETURN_IF_ERROR(begin_step(trainer));
        STK_RETURN_IF_ERROR(read_steps(trainer, steps_ahead(trainer)));
        stk_timing_end(trainer);
        if (state->i_batch == trainer->n_batches && trainer->config.max_steps > 0 &&
            state->step >= trainer->config.max_steps)
            STK_RETURN_IF_ERROR(end_epoch(trainer));
    }
    trainer->result.early_stopped = state->epoch < trainer->n_epochs && trainer->config.patience > 0 &&
                                    state->n_bad_epochs >= trainer->config.patience;
    return STK_OK;
}

/* So that the first step's time is a step's. */
static stk_status build_kernels(stk_trainer *trainer)
{
    int64_t begun = stk_clock_ns();
    if (stk_engine_device(trainer->engine)->class->on_host) return STK_OK;
    STK_RETURN_IF_ERROR(stk_program_prepare(trainer->train.program));
    stk_train_event event = make_event(trainer, STK_EVENT_BUILT);
    event.step_s = (double)(stk_clock_ns() - begun) * 1e-9;
    stk_trainer_emit(trainer, &event);
    stk_device *device = (stk_device *)stk_engine_device(trainer->engine);
    if (device->note[0]) {
        event = make_event(trainer, STK_EVENT_WARNING);
        event.text = device->note;
        stk_trainer_emit(trainer, &event);
        device->note[0] = 0;
    }
    return STK_OK;
}

/* What is made once, by the first rank. */
static stk_status start_weights(stk_trainer *trainer)
{
    if (trainer->comm && trainer->comm->rank > 0) return STK_OK;
    STK_RETURN_IF_ERROR(stk_trainer_whiten(trainer));
    STK_RETURN_IF_ERROR(stk_outer_start(trainer));
    return stk_trainer_start_average(trainer);
}

/* What all ranks end with alike, the hooks may still save. */
static stk_status end_run(stk_trainer *trainer, stk_status status)
{
    stk_text error = {0};
    if ((status != STK_OK && status != STK_INTERRUPTED) || !stk_divided_exist(trainer)) return status;
    if (status != STK_OK) stk_text_add(&error, "%s", stk_error_text());
    stk_status told = stk_divided_open(trainer);
    if (told == STK_OK && trainer->hooks.at_end) trainer->hooks.at_end(trainer->hooks.user, trainer, status);
    told = stk_divided_close(trainer, told);
    if (told != STK_OK)
        status = told;
    else if (status != STK_OK)
        (void)stk_fail(status, "%s", stk_text_get(&error));
    stk_text_free(&error);
    return status;
}

stk_status stk_loop_run(stk_trainer *trainer, int64_t n_epochs)
{
    stk_status status;
    trainer->run_start_ns = stk_clock_ns();
    trainer->is_torn = false;
    STK_TRY(start_weights(trainer));
    STK_TRY(stk_replicas_sync(trainer));
    if (n_epochs != trainer->n_epochs) { /* A later call may go on for more epochs; the schedule then spans them all. */
        trainer->n_epochs = n_epochs;
        trainer->n_steps = trainer->n_batches * n_epochs;
        stk_loader_close(trainer->loader);
        trainer->loader = NULL;
    }
    STK_TRY(open_loader(trainer));
    STK_TRY(build_kernels(trainer));
    status = end_run(trainer, train_on(trainer));
done:
    stk_timing_finish(trainer);
    trainer->n_begun = 0; /* After a failure nobody reads the rest. */
    stk_trainer_keep_skipped(trainer, trainer->loader);
    /* What all ranks end with alike. */
    if (status == STK_OK) status = stk_replicas_join_skipped(trainer);
    stk_loader_close(trainer->loader);
    trainer->loader = NULL;
    trainer->result.wall_s += (double)(stk_clock_ns() - trainer->run_start_ns) * 1e-9;
    if (status == STK_OK) {
        stk_train_event event = make_event(trainer, STK_EVENT_END);
        stk_trainer_emit(trainer, &event);
    }
    return status;
}

stk_status stk_trainer_run(stk_trainer *trainer, int64_t n_epochs)
{
    if (!trainer) return stk_fail(STK_INVALID, "there is no trainer");
    STK_RETURN_IF_ERROR(stk_trainer_prepare(trainer, n_epochs));
    return stk_replicas_run(trainer, n_epochs);
}

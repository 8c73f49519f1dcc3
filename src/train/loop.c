/* The training loop: take a batch, run the step, read its numbers, tell those who asked.
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
#include "train/trainer_state.h"

void stk_trainer_emit(stk_trainer *trainer, stk_train_event *event)
{
    if (trainer->config.on_event) trainer->config.on_event(trainer->config.event_user, event);
}

static stk_metrics epoch_metrics(const stk_trainer *trainer)
{
    const stk_train_state *state = &trainer->state;
    double n = state->epoch_samples > 0 ? (double)state->epoch_samples : 1;
    stk_metrics m = {.loss = state->epoch_loss_sum / n, .accuracy = -1, .top5 = -1, .n_samples = state->epoch_samples};
    if (trainer->has_classes) {
        m.accuracy = state->epoch_correct / n;
        m.top5 = state->epoch_top5 / n;
    }
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
                             .train = epoch_metrics(trainer),
                             .epoch_s = (double)epoch_ns * 1e-9,
                             .peak_planned_bytes = trainer->result.peak_planned_bytes};
    if (trainer->smooth_step_s > 0) event.samples_per_s = (double)trainer->train.batch / trainer->smooth_step_s;
    if (epoch_ns > 0) event.input_wait_share = (double)trainer->epoch_wait_ns / (double)epoch_ns;
    event.left_s = (double)(trainer->n_steps - state->step) * trainer->smooth_step_s;
    return event;
}

stk_status stk_trainer_open_loader(stk_trainer *trainer, const stk_dataset *dataset, stk_loader_config config,
                                   stk_loader **out)
{
    if (!trainer->data_memory)
        STK_RETURN_IF_ERROR(stk_memory_new(trainer->config.data_memory_bytes, &trainer->data_memory));
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
    return stk_trainer_open_loader(trainer, trainer->dataset, config, &trainer->loader);
}

void stk_trainer_keep_skipped(stk_trainer *trainer, const stk_loader *loader)
{
    stk_loader_stats stats;
    if (!loader) return;
    stk_loader_get_stats(loader, &stats);
    trainer->n_skipped += stats.n_skipped;
    if (loader == trainer->loader) trainer->result.n_data_threads = stats.n_active_threads;
    for (int64_t i = 0; trainer->n_skipped_texts < 100; i++) {
        const char *text = stk_loader_skipped(loader, i);
        if (!text) return;
        char **grown = realloc(trainer->skipped, (trainer->n_skipped_texts + 1) * sizeof(*grown));
        if (!grown) return; /* The list is for people; the count is right all the same. */
        trainer->skipped = grown;
        if ((grown[trainer->n_skipped_texts] = strdup(text))) trainer->n_skipped_texts++;
    }
}

static void note_step_time(stk_trainer *trainer, int64_t ns)
{
    double s = (double)ns * 1e-9;
    trainer->step_s[trainer->n_step_times++ % N_STEP_TIMES] = (float)s;
    /* The first steps make primitives warm; after that a slow average keeps the display steady. */
    trainer->smooth_step_s = trainer->n_step_times <= 3 ? s : trainer->smooth_step_s * 0.95 + s * 0.05;
}

static stk_status take_step(stk_trainer *trainer, double *out_loss)
{
    stk_train_state *state = &trainer->state;
    int64_t start = stk_clock_ns();
    STK_RETURN_IF_ERROR(open_loader(trainer));
    const stk_batch *batch = stk_loader_next(trainer->loader);
    int64_t ready = stk_clock_ns();
    if (!batch) {
        stk_status lost = stk_loader_status(trainer->loader);
        if (lost == STK_CORRUPT && trainer->dataset->on_error == STK_ON_ERROR_STOP)
            stk_fail(lost, "%s; on_error: replace puts another in its place", stk_error_text());
        if (lost != STK_OK) return lost;
        return stk_fail(STK_INTERNAL, "the data ended before the run");
    }
    double rate = stk_schedule_rate(&trainer->config.schedule, trainer->optimizer.lr, state->step, trainer->n_steps,
                                    trainer->n_batches);
    trainer->lr = (float)rate;
    trainer->step_input = state->step;
    trainer->sample_input = state->step * trainer->train.batch;
    stk_step_bind(&trainer->train, batch);
    stk_status status = stk_program_run(trainer->train.program);
    stk_batch_release(batch);
    STK_RETURN_IF_ERROR(status);
    double loss = stk_step_scalar(&trainer->train, "loss");
    state->step++;
    state->i_batch++;
    state->epoch_loss_sum += loss * (double)trainer->train.batch;
    state->epoch_correct += stk_step_scalar(&trainer->train, "n_correct");
    state->epoch_top5 += stk_step_scalar(&trainer->train, "n_top5");
    state->epoch_samples += trainer->train.batch;
    int64_t end = stk_clock_ns();
    note_step_time(trainer, end - start);
    trainer->epoch_wait_ns += ready - start;
    trainer->wait_ns += ready - start;
    trainer->train_ns += end - start;
    if (trainer->result.first_step_s == 0) trainer->result.first_step_s = stk_process_age_s();
    *out_loss = loss;
    if (!isfinite(loss))
        return stk_fail(STK_INVALID, "the loss is %f at step %lld (learning rate %g); try a lower rate or clip_norm",
                        loss, (long long)state->step, rate);
    return STK_OK;
}

static void begin_epoch(stk_trainer *trainer)
{
    trainer->epoch_start_ns = stk_clock_ns();
    trainer->epoch_wait_ns = 0;
}

/* Validation, the event, and the step into the next epoch. */
static stk_status end_epoch(stk_trainer *trainer)
{
    stk_train_state *state = &trainer->state;
    stk_train_event event = make_event(trainer, STK_EVENT_EPOCH);
    bool improved = false;
    event.loss = event.train.loss;
    trainer->result.train = event.train;
    if (trainer->config.valid) {
        STK_RETURN_IF_ERROR(stk_trainer_evaluate(trainer, trainer->config.valid, &event.valid));
        trainer->result.valid = event.valid;
        improved = event.valid.loss < state->best_valid_loss;
        if (improved) {
            state->best_valid_loss = event.valid.loss;
            state->best_epoch = state->epoch;
        }
        state->n_bad_epochs = improved ? 0 : state->n_bad_epochs + 1;
    }
    state->epoch++;
    state->i_batch = 0;
    state->epoch_loss_sum = state->epoch_correct = state->epoch_top5 = 0;
    state->epoch_samples = 0;
    trainer->result.n_epochs = state->epoch;
    stk_trainer_emit(trainer, &event);
    if (trainer->hooks.after_epoch)
        STK_RETURN_IF_ERROR(trainer->hooks.after_epoch(trainer->hooks.user, trainer, &event, improved));
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
        double loss = 0;
        if (state->i_batch == trainer->n_batches) {
            STK_RETURN_IF_ERROR(end_epoch(trainer));
            continue;
        }
        if (trainer->stop) return stk_fail(STK_INTERRUPTED, "stopped after step %lld", (long long)state->step);
        STK_RETURN_IF_ERROR(take_step(trainer, &loss));
        stk_train_event event = make_event(trainer, STK_EVENT_STEP);
        event.loss = loss;
        stk_trainer_emit(trainer, &event);
        if (trainer->hooks.after_step)
            STK_RETURN_IF_ERROR(trainer->hooks.after_step(trainer->hooks.user, trainer, &event));
        if (state->i_batch == trainer->n_batches && trainer->config.max_steps > 0 &&
            state->step >= trainer->config.max_steps)
            STK_RETURN_IF_ERROR(end_epoch(trainer));
    }
    trainer->result.early_stopped = state->epoch < trainer->n_epochs && trainer->config.patience > 0 &&
                                    state->n_bad_epochs >= trainer->config.patience;
    return STK_OK;
}

stk_status stk_trainer_run(stk_trainer *trainer, int64_t n_epochs)
{
    stk_status status;
    STK_RETURN_IF_ERROR(stk_trainer_prepare(trainer, n_epochs));
    trainer->run_start_ns = stk_clock_ns();
    if (n_epochs != trainer->n_epochs) { /* A later call may go on for more epochs; the schedule then spans them all. */
        trainer->n_epochs = n_epochs;
        trainer->n_steps = trainer->n_batches * n_epochs;
        stk_loader_close(trainer->loader);
        trainer->loader = NULL;
    }
    STK_TRY(open_loader(trainer));
    STK_TRY(train_on(trainer));
done:
    stk_trainer_keep_skipped(trainer, trainer->loader);
    stk_loader_close(trainer->loader);
    trainer->loader = NULL;
    trainer->result.wall_s += (double)(stk_clock_ns() - trainer->run_start_ns) * 1e-9;
    if (status == STK_OK) {
        stk_train_event event = make_event(trainer, STK_EVENT_END);
        stk_trainer_emit(trainer, &event);
    }
    return status;
}

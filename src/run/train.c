/* Training with a folder: resuming, saving, metrics, the test at the end. See stoker/train/run.h.
 Saves are save.c's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "engine/engine.h"
#include "recipe/build.h"
#include "recipe/expect.h"
#include "run/beats.h"
#include "run/ranks.h"
#include "run/state.h"
#include "stoker/data/cache.h"
#include "train/trainer_state.h"

/* --- hooks and events --- */

enum { RETRY_STEPS = 100 }; /* between two tries to save, where one failed */

static bool is_due(const stk_run *run, bool by_epoch, int64_t number)
{
    const stk_recipe *recipe = run->recipe;
    return recipe->checkpoint_by_epoch == by_epoch && number % recipe->checkpoint_every == 0;
}

static bool wants_state(void *user, int64_t step)
{
    stk_run *run = user;
    return is_due(run, false, step) || stk_run_state_is_due(run) ||
           (step % RETRY_STEPS == 0 && (run->save_status != STK_OK || run->is_saving));
}

/* What TensorBoard is not told is no reason to stop. */
static void warn_observer(stk_run *run, stk_status status)
{
    char text[700];
    if (status == STK_OK) return;
    snprintf(text, sizeof(text), "no more event files for TensorBoard: %s; the run goes on", stk_error_text());
    stk_run_warn(run, text);
}

static stk_status after_step(void *user, stk_trainer *trainer, const stk_train_event *event)
{
    stk_run *run = user;
    stk_run_save_look(run);
    /* The last step of an epoch is saved with the epoch's end, or validation would be run twice after resuming. */
    if (event->i_batch == event->n_batches) {
        warn_observer(run, stk_observe_gradients(&run->observer, trainer, event->step));
        return STK_OK;
    }
    bool retry = run->save_status != STK_OK && !run->is_saving && event->step % RETRY_STEPS == 0 &&
                 stk_trainer_is_settled(trainer);
    if (is_due(run, false, event->step) || retry) stk_run_save(run, false, true);
    stk_run_keep_state(run);
    return STK_OK;
}

static void warn_full_cache(stk_run *run)
{
    char text[1400];
    stk_cache_stats cache;
    stk_dataset_get_cache(run->train, &cache);
    if (run->cache_warned || !cache.disk_is_full) return;
    run->cache_warned = true;
    snprintf(text, sizeof(text),
             "the disk of the cache '%s' is full: %lld of %lld records are kept, the others are made in each epoch; "
             "free some room, or set STOKER_CACHE",
             cache.path, (long long)cache.n_present, (long long)cache.n_records);
    stk_run_warn(run, text);
}

static void on_batch(void *user, const stk_batch *batch)
{
    stk_run *run = user;
    warn_observer(run, stk_observe_batch(&run->observer, stk_trainer_batches_of(run->trainer), batch));
}

static stk_status after_epoch(void *user, stk_trainer *trainer, const stk_train_event *event, bool improved)
{
    stk_run *run = user;
    bool best = improved && run->recipe->checkpoint_best;
    bool due = is_due(run, true, event->epoch) || is_due(run, false, event->step) || run->save_status != STK_OK;
    if (best || due) stk_run_save(run, best, event->epoch < run->recipe->epochs);
    warn_observer(run, stk_observe_parameters(&run->observer, trainer, event->step));
    warn_full_cache(run);
    return STK_OK;
}

static void at_end(void *user, stk_trainer *trainer, stk_status status)
{
    (void)trainer;
    stk_run_save_end(user, status);
}

static void warn_metrics(stk_run *run)
{
    char text[700];
    if (run->metrics_warned) return;
    run->metrics_warned = true;
    snprintf(text, sizeof(text), "%s; the run goes on", stk_error_text());
    stk_run_warn(run, text);
}

static const int64_t THROTTLE_NS = 10000000000; /* between two looks at the processors' clocks */

static void notice_clocks(stk_run *run, const stk_train_event *event)
{
    char text[STK_NOTICE_TEXT];
    int64_t now = stk_clock_ns();
    if (now - run->throttle_ns < THROTTLE_NS) return;
    run->throttle_ns = now;
    if (stk_throttle_look(&run->throttle, event->time.compute, text, sizeof(text))) stk_run_warn(run, text);
}

/* Trouble, and the numbers for Prometheus. */
static void notice(stk_run *run, const stk_train_event *event)
{
    char text[STK_NOTICE_TEXT + 200];
    if (event->kind == STK_EVENT_STEP && stk_notice_look(&run->notice, event, text)) stk_run_warn(run, text);
    if (event->kind == STK_EVENT_STEP) notice_clocks(run, event);
    if (stk_publish(&run->publisher, event) == STK_OK) return;
    snprintf(text, sizeof(text), "no more numbers for Prometheus: %.500s; the run goes on", stk_error_text());
    stk_run_warn(run, text);
}

/* Steps to trace that this run does not have. */
static void warn_trace(stk_run *run, int64_t n_steps, const char *when)
{
    char text[160];
    int64_t first = run->options.trace_first;
    if (first <= n_steps || n_steps <= 0 || run->trace_warned) return;
    run->trace_warned = true;
    snprintf(text, sizeof(text), "no trace: step %lld was to be traced, and the run %s %lld step%s", (long long)first,
             when, (long long)n_steps, n_steps == 1 ? "" : "s");
    stk_run_warn(run, text);
}

static const int64_t ENERGY_NS = 60000000000; /* between two countings */

/* Looking at a GPU takes some milliseconds of the loop. */
static void watch_chip(stk_run *run, const stk_train_event *event)
{
    static const int64_t LOOK_NS = 1000000000;
    if (event->kind == STK_EVENT_PLAN && !run->chip.library)
        stk_chip_open(&run->chip, stk_engine_device(run->trainer->engine)->bus, NULL);
    bool is_due = event->kind == STK_EVENT_STEP && stk_clock_ns() - run->looked_ns >= LOOK_NS;
    if (!is_due && event->kind != STK_EVENT_EPOCH) return;
    stk_chip_look(&run->chip);
    run->looked_ns = stk_clock_ns();
}

static void on_event(void *user, const stk_train_event *event)
{
    stk_run *run = user;
    stk_status status = STK_OK;
    if (event->kind == STK_EVENT_STEP && stk_clock_ns() - run->counted_ns > ENERGY_NS) {
        stk_energy_count(&run->energy);
        run->counted_ns = stk_clock_ns();
    }
    watch_chip(run, event);
    bool is_logged = event->kind == STK_EVENT_STEP && event->step % run->recipe->log_every == 0;
    if (event->kind == STK_EVENT_STEP) run->last_loss = event->loss;
    if (is_logged) status = stk_metrics_write_step(&run->metrics, event);
    if (event->kind == STK_EVENT_EPOCH) status = stk_metrics_write_epoch(&run->metrics, event, run->last_loss);
    if (is_logged || event->kind == STK_EVENT_EPOCH) warn_observer(run, stk_observe_event(&run->observer, event));
    if (status != STK_OK) warn_metrics(run);
    notice(run, event);
    stk_train_event own = *event;
    if (event->kind == STK_EVENT_PLAN) {
        if (event->memory_limit_bytes) run->info.memory_limit_bytes = event->memory_limit_bytes;
        run->copy_bytes = stk_run_copy_bytes(run->recipe, stk_trainer_step_limit(run->trainer),
                                             stk_trainer_planned(run->trainer), event->variable_bytes);
        stk_trainer_count_copy(run->trainer, run->copy_bytes);
        own.checkpoint_copy_bytes = run->copy_bytes;
        int64_t most = run->options.max_steps;
        warn_trace(run, most > 0 && (most < event->n_steps || event->n_steps <= 0) ? most : event->n_steps, "has");
    }
    stk_run_emit(run, &own);
}

/* --- beginning --- */

static stk_status configure(stk_run *run)
{
    stk_trainer_config config = stk_run_config(run);
    stk_trainer_hooks hooks = {.on_batch = on_batch,
                               .wants_state = wants_state,
                               .after_step = after_step,
                               .after_epoch = after_epoch,
                               .at_end = at_end,
                               .user = run};
    config.n_replicas = stk_run_replicas(run);
    if (config.n_threads == 0 && !config.strict) config.n_threads = stk_run_rank_threads(run);
    config.max_steps = run->options.max_steps;
    config.on_event = on_event;
    config.event_user = run;
    char trace[STK_PATH_BYTES];
    if (run->options.trace_first > 0) {
        STK_RETURN_IF_ERROR(stk_path_join(trace, sizeof(trace), run->folder, "trace.json"));
        config.trace = trace;
        config.trace_first = run->options.trace_first;
        config.trace_last = run->options.trace_last;
    }
    stk_run_dump(run, &config);
    stk_trainer_configure(run->trainer, &config);
    stk_trainer_set_hooks(run->trainer, &hooks);
    return STK_OK;
}

static void open_publisher(stk_run *run)
{
    char text[700];
    const stk_recipe *recipe = run->recipe;
    stk_status status = stk_publisher_open(run->folder, recipe->name, recipe->prometheus.file, recipe->prometheus.port,
                                           &run->publisher);
    if (status != STK_OK) {
        snprintf(
            text, sizeof(text),
            "no numbers for Prometheus: %.500s; the run goes on; another 'prometheus.port' may be free, and 0 takes "
            "any that is",
            stk_error_text());
        stk_run_warn(run, text);
    } else if (run->publisher.exporter) {
        snprintf(text, sizeof(text), "http://127.0.0.1:%d/metrics", stk_exporter_port(run->publisher.exporter));
        stk_train_event event = {.kind = STK_EVENT_SERVED, .text = text};
        stk_run_emit(run, &event);
    }
}

static stk_status restore(stk_run *run, const char *checkpoint)
{
    const stk_named_tensor *tensors;
    size_t n_tensors;
    stk_train_state state;
    STK_RETURN_IF_ERROR(stk_trainer_make_room(run->trainer));
    STK_RETURN_IF_ERROR(stk_trainer_tensors(run->trainer, &tensors, &n_tensors));
    STK_RETURN_IF_ERROR(stk_checkpoint_load(checkpoint, tensors, n_tensors, true, &state, NULL));
    STK_RETURN_IF_ERROR(stk_trainer_put_tensors(run->trainer));
    STK_RETURN_IF_ERROR(stk_trainer_set_state(run->trainer, &state));
    STK_RETURN_IF_ERROR(stk_trainer_load_skipped(run->trainer, checkpoint));
    if (run->is_from_memory) return STK_OK; /* On the disk it is not. */
    run->saved_state = state;
    snprintf(run->saved, sizeof(run->saved), "%s", checkpoint);
    return STK_OK;
}

static bool is_finished(const stk_run *run)
{
    stk_train_state state;
    stk_trainer_get_state(run->trainer, &state);
    return state.epoch >= run->recipe->epochs ||
           (run->recipe->config.patience > 0 && state.n_bad_epochs >= run->recipe->config.patience);
}

static int64_t step_of_path(const char *path)
{
    const char *name = strrchr(path, '-');
    return name ? strtoll(name + 1, NULL, 10) : 0;
}

/* The program for training, as the recipe asks for it. */
static stk_status prepare(stk_run *run)
{
    STK_RETURN_IF_ERROR(configure(run));
    STK_RETURN_IF_ERROR(stk_trainer_prepare(run->trainer, run->recipe->epochs));
    stk_status status = stk_expect_check(run->recipe->expected, run->recipe->n_expected, run->trainer);
    if (status == STK_OK) return STK_OK;
    return stk_build_fail(run->recipe->expect, status);
}

/* A recipe that was edited may have an error of its own, which is told before that the folder has another recipe. */
static stk_status open_folder(stk_run *run, char checkpoint[STK_PATH_BYTES], bool *has_earlier, stk_text *warnings)
{
    stk_text why = {0};
    stk_status status = stk_folder_open(run, checkpoint, has_earlier, warnings);
    if (status != STK_MISMATCH) return status;
    stk_text_add(&why, "%s", stk_error_text());
    stk_run_options options = run->options;
    run->options.on_event = NULL; /* nobody was told of a run yet */
    STK_TRY(prepare(run));
    if (!run->options.resume) STK_TRY(stk_run_init_weights(run));
    status = stk_fail(STK_MISMATCH, "%s", stk_text_get(&why));
done:
    run->options = options;
    stk_text_free(&why);
    return status;
}

/* Says so where the run starts from nothing next to an earlier one, which is moved only now that the plan, the device
 * and the weights are there: a start that is refused changes nothing. */
static stk_status start_run(stk_run *run, bool has_earlier)
{
    char previous[STK_PATH_BYTES], note[2 * STK_PATH_BYTES + 100];
    if (has_earlier) {
        STK_RETURN_IF_ERROR(stk_folder_move_aside(run, previous));
        bool is_over = stk_result_is_finished(previous, run->recipe->epochs);
        snprintf(note, sizeof(note), "starts over; the earlier run is kept in '%s'%s", previous,
                 is_over ? "; it is finished" : " (--resume would have gone on with it)");
        stk_run_warn(run, note);
    } else if (run->options.resume) {
        bool is_there = stk_folder_find_previous(run, previous);
        snprintf(note, sizeof(note), "nothing to resume in '%s': starts over%s%s%s", run->folder,
                 is_there ? "; an earlier run is in '" : "", is_there ? previous : "", is_there ? "'" : "");
        stk_run_warn(run, note);
    }
    return STK_OK;
}

/* The folder, the plan, and the state to go on from. */
static stk_status begin(stk_run *run)
{
    char checkpoint[STK_PATH_BYTES], on_disk[STK_PATH_BYTES];
    bool has_earlier;
    stk_text warnings = {0};
    stk_train_state state;
    stk_status status;
    STK_TRY(open_folder(run, checkpoint, &has_earlier, &warnings));
    memcpy(on_disk, checkpoint, sizeof(on_disk));
    run->is_from_memory = stk_run_find_state(run, checkpoint);
    if (run->is_from_memory) memcpy(run->saved, on_disk, sizeof(on_disk));
    run->info.folder = run->folder;
    run->info.resumed_step = checkpoint[0] ? step_of_path(checkpoint) : 0;
    if (warnings.n) stk_run_warn(run, stk_text_get(&warnings));
    if (run->options.on_info) run->options.on_info(run->options.user, &run->info);
    if (checkpoint[0]) STK_TRY(stk_folder_read_choices(run));
    STK_TRY(prepare(run));
    if (checkpoint[0]) STK_TRY(stk_folder_check_data(run));
    STK_TRY(checkpoint[0] ? restore(run, checkpoint) : stk_run_init_weights(run));
    if (!checkpoint[0]) STK_TRY(start_run(run, has_earlier));
    /* Only now, so that a run whose plan is refused leaves no recipe behind that would refuse the next. */
    STK_TRY(stk_folder_write_recipe(run));
    stk_trainer_get_state(run->trainer, &state);
    stk_run_warn_schedule(run, state.step);
    STK_TRY(stk_metrics_open(run->folder, state.step, state.epoch, &run->metrics));
    warn_observer(run, stk_observe_open(run->folder, state.step, run->recipe, stk_text_get(&run->recipe_text),
                                        run->trainer, &run->observer));
    open_publisher(run);
    run->notice.clip_norm = run->recipe->config.clip_norm;
    stk_throttle_open(&run->throttle, "/sys/devices/system/cpu", (int)sysconf(_SC_NPROCESSORS_CONF));
    run->throttle_ns = stk_clock_ns();
    stk_energy_open(&run->energy, NULL);
    STK_TRY(stk_checkpoint_writer_open(run->folder, (int)run->recipe->checkpoint_keep, &run->writer));
    stk_run_open_states(run);
    stk_run_tell_beats(run);
done:
    stk_text_free(&warnings);
    return status;
}

/* --- end --- */

/* The test set, with the best parameters where validation chose some. */
static stk_status test(stk_run *run, stk_run_result *out)
{
    char path[STK_PATH_BYTES];
    const stk_named_tensor *tensors;
    size_t n_tensors;
    stk_train_state state;
    stk_trainer_get_state(run->trainer, &state);
    out->evaluated_step = state.step;
    if (!run->test) return STK_OK;
    if (run->valid && run->recipe->checkpoint_best &&
        stk_checkpoint_find(run->folder, true, path, sizeof(path), NULL) == STK_OK &&
        step_of_path(path) != state.step) {
        STK_RETURN_IF_ERROR(stk_trainer_tensors(run->trainer, &tensors, &n_tensors));
        STK_RETURN_IF_ERROR(stk_checkpoint_load(path, tensors, n_tensors, false, &state, NULL));
        STK_RETURN_IF_ERROR(stk_trainer_put_tensors(run->trainer));
        out->evaluated_step = state.step;
    }
    return stk_trainer_evaluate(run->trainer, run->test, &out->test);
}

static stk_status finish(stk_run *run, stk_run_result *out)
{
    out->checkpoint_copy_bytes = run->copy_bytes;
    out->is_finished = is_finished(run);
    if (out->is_finished) STK_RETURN_IF_ERROR(test(run, out));
    if (out->is_finished) {
        out->unjudged_epochs = run->recipe->unjudged_epochs;
        out->n_expected = out->unjudged_epochs > 0 ? 0 : run->recipe->n_expected;
        memcpy(out->expected, run->recipe->expected, sizeof(out->expected));
        stk_expect_judge(out->expected, out->n_expected, &out->test);
    }
    stk_trainer_get_result(run->trainer, &out->train);
    out->has_ended = true;
    return stk_run_save_judge(run, stk_result_write(run, out));
}

/* A token that the embedding has no row for is the engine's news; which key of the recipe makes the rows is ours. */
static stk_status explain(const stk_run *run, stk_status status)
{
    const stk_recipe *recipe = run->recipe;
    const stk_yaml_node *vocabulary = stk_yaml_get(recipe->model, "vocabulary");
    if (status != STK_NO_ROW || !stk_build_takes_tokens(recipe)) return status;
    stk_text text = {0};
    stk_text_add(&text, "%s; the model's 'vocabulary' must be above every token of the data", stk_error_text());
    stk_yaml_fail(vocabulary ? vocabulary : recipe->model, "%s", stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

/* What the first rank has found out, for the others. */
enum { TO_TRAIN, NOTHING_TO_DO };

static bool follower_wants_state(void *user, int64_t step)
{
    (void)step;
    return stk_run_state_is_due(user);
}

static stk_status after_followed_step(void *user, stk_trainer *trainer, const stk_train_event *event)
{
    (void)trainer;
    if (event->i_batch < event->n_batches) stk_run_keep_state(user);
    return STK_OK;
}

/* Another rank than the first: trains along, and helps with the test. */
static stk_status follow(stk_run *run, stk_run_result *out)
{
    int64_t what;
    stk_trainer_config config = stk_run_config(run);
    if (config.n_threads == 0 && !config.strict) config.n_threads = stk_run_rank_threads(run);
    config.n_replicas = stk_run_replicas(run);
    config.max_steps = run->options.max_steps;
    stk_trainer_hooks hooks = {.wants_state = follower_wants_state, .after_step = after_followed_step, .user = run};
    stk_trainer_configure(run->trainer, &config);
    stk_trainer_set_hooks(run->trainer, &hooks);
    STK_RETURN_IF_ERROR(stk_run_agree(run, stk_trainer_prepare(run->trainer, run->recipe->epochs)));
    stk_run_open_states(run);
    stk_run_tell_beats(run);
    STK_RETURN_IF_ERROR(stk_run_share_number(run, &what));
    if (what == NOTHING_TO_DO) return STK_OK;
    STK_RETURN_IF_ERROR(stk_trainer_run(run->trainer, run->recipe->epochs));
    out->is_finished = is_finished(run);
    if (out->is_finished && run->test) STK_RETURN_IF_ERROR(stk_trainer_evaluate(run->trainer, run->test, &out->test));
    return STK_OK;
}

/* Where nothing is left to do: a finished run's result, or the steps that are wanted are done. */
static stk_status look_back(stk_run *run, const char *result, stk_run_result *out)
{
    if (is_finished(run) && stk_path_exists(result)) STK_RETURN_IF_ERROR(stk_result_judge(run, result, out));
    bool is_kept = !run->is_from_memory; /* Otherwise it has yet to be saved. */
    if (is_kept && run->options.max_steps > 0 && run->info.resumed_step >= run->options.max_steps)
        out->was_finished = true;
    return STK_OK;
}

static stk_status lead(stk_run *run, stk_run_result *out)
{
    char result[STK_PATH_BYTES];
    stk_train_state state;
    stk_text error = {0};
    stk_status status = begin(run);
    if (status == STK_OK) status = stk_path_join(result, sizeof(result), run->folder, "result.json");
    if (status == STK_OK) status = look_back(run, result, out);
    STK_RETURN_IF_ERROR(stk_run_agree(run, status));
    int64_t what = out->was_finished ? NOTHING_TO_DO : TO_TRAIN;
    STK_RETURN_IF_ERROR(stk_run_share_number(run, &what));
    if (out->was_finished) {
        stk_trainer_get_result(run->trainer, &out->train);
        return STK_OK;
    }
    (void)unlink(result); /* It is of a part of this run; the end writes it again. */
    status = explain(run, stk_trainer_run(run->trainer, run->recipe->epochs));
    if (status != STK_OK) stk_text_add(&error, "%s", stk_error_text());
    stk_run_save_end(run, status);
    stk_trainer_get_state(run->trainer, &state);
    warn_trace(run, state.step, "ended after");
    if (status == STK_OK) {
        status = explain(run, finish(run, out));
        if (status == STK_OK) stk_run_write_profile(run, &out->train);
    } else {
        stk_trainer_get_result(run->trainer, &out->train);
        stk_run_write_profile(run, &out->train);
        /* Not to have saved is the worse news for someone who only pressed Ctrl-C. */
        stk_status kept = stk_run_save_judge(run, STK_OK);
        if (status == STK_INTERRUPTED && kept != STK_OK)
            status = kept;
        else
            status = stk_fail(status, "%s", stk_text_get(&error));
    }
    stk_text_free(&error);
    return status;
}

stk_status stk_run_train(stk_run *run, stk_run_result *out)
{
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    *out = (stk_run_result){.evaluated_step = 0};
    stk_status status = stk_run_is_first(run) ? lead(run, out) : follow(run, out);
    return stk_run_end_beats(run, stk_run_tell_failure(run, status));
}

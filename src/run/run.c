/* Opening and closing runs, and what is the same for training and evaluation. See stoker/train/run.h. */
#include "stoker/train/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/neighbour.h"
#include "base/thread.h"
#include "data/dataset/dataset.h"
#include "engine/engine.h"
#include "recipe/build.h"
#include "recipe/data_record.h"
#include "recipe/describe.h"
#include "run/beats.h"
#include "run/ranks.h"
#include "run/state.h"
#include "stoker/data/sources.h"
#include "train/precision.h"

void stk_run_warn(stk_run *run, const char *text)
{
    stk_train_event event = {.kind = STK_EVENT_WARNING, .text = text};
    stk_run_emit(run, &event);
}

void stk_run_emit(stk_run *run, const stk_train_event *event)
{
    if (!run->options.on_event) return;
    if (run->lookout) stk_mutex_lock(&run->event_lock);
    run->options.on_event(run->options.user, event);
    if (run->lookout) stk_mutex_unlock(&run->event_lock);
}

/* Of all sources; 0 where one of them does not know. */
static int64_t count_source_bytes(const stk_run *run)
{
    const stk_dataset *parts[] = {run->train, run->recipe->part[STK_PART_VALID].share == 0 ? run->valid : NULL,
                                  run->test};
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        int64_t n = parts[i] ? stk_dataset_source_bytes(parts[i]) : 0;
        if (parts[i] && n == 0) return 0;
        sum += n;
    }
    return sum;
}

static void fill_info(stk_run *run)
{
    const stk_recipe *recipe = run->recipe;
    run->info = (stk_run_info){.name = recipe->name,
                               .model = recipe->model_kind,
                               .sample = stk_build_sample_word(recipe, run->train),
                               .device = recipe->device,
                               .precision = stk_precision_name(recipe->precision),
                               .n_train = stk_dataset_count(run->train),
                               .n_valid = run->valid ? stk_dataset_count(run->valid) : 0,
                               .n_test = run->test ? stk_dataset_count(run->test) : 0,
                               .n_classes = stk_dataset_classes(run->train, NULL),
                               .source_bytes = count_source_bytes(run),
                               .batch = recipe->batch,
                               .n_epochs = recipe->epochs,
                               .memory_limit_bytes = stk_build_memory_limit(recipe)};
}

/* --- building --- */

typedef struct part_job {
    const stk_recipe *recipe;
    int i_part;
    stk_thread thread;
    stk_dataset *dataset; /* NULL: none */
    stk_status status;
    char error[1024];
} part_job;

static void build_part(void *arg)
{
    part_job *job = arg;
    job->status = stk_build_dataset(job->recipe, job->i_part, &job->dataset);
    if (job->status != STK_OK) snprintf(job->error, sizeof(job->error), "%s", stk_error_text());
}

/* All parts at once, since listing folders and unzipping are most of the time until the first step. The first error in
 * the order of parts counts, however long each takes. */
static stk_status build_datasets(const stk_recipe *recipe, stk_dataset *out[STK_N_PARTS])
{
    part_job job[STK_N_PARTS] = {{0}};
    stk_status status = STK_OK;
    for (int i = STK_N_PARTS - 1; i >= 0; i--) {
        job[i] = (part_job){.recipe = recipe, .i_part = i};
        bool alone = i == STK_PART_TRAIN || !recipe->part[i].node;
        if (alone || stk_thread_start(&job[i].thread, "stk-open", false, build_part, &job[i]) != STK_OK)
            build_part(&job[i]);
    }
    for (int i = 0; i < STK_N_PARTS; i++) {
        stk_thread_join(&job[i].thread);
        out[i] = job[i].dataset;
        if (job[i].status != STK_OK && status == STK_OK) status = stk_fail(job[i].status, "%s", job[i].error);
    }
    return status;
}

/* Data sets, model and trainer. The trainer takes train and model; valid and test stay ours. */
static stk_status build_parts(stk_run *run)
{
    stk_status status;
    stk_dataset *part[STK_N_PARTS];
    stk_model *model = NULL;
    status = build_datasets(run->recipe, part);
    stk_dataset *train = part[STK_PART_TRAIN];
    run->valid = part[STK_PART_VALID];
    run->test = part[STK_PART_TEST];
    if (status != STK_OK) goto done;
    const char *said = "";
    for (int i = 0; i < STK_N_PARTS; i++) {
        const char *note = part[i] ? stk_dataset_note(part[i]) : "";
        if (note[0] && strcmp(note, said)) stk_run_warn(run, said = note); /* parts may share a source */
    }
    STK_TRY(stk_build_model(run->recipe, train, &model));
    STK_TRY(stk_build_check_names(run->recipe, model));
    STK_TRY(stk_build_check_parts(run->recipe, train, run->valid, run->test));
    run->trainer = stk_trainer_new(model, train, run->recipe->optimizer);
    STK_RETURN_IF_ERROR(stk_trainer_status(run->trainer)); /* It has taken both, and they are gone. */
    if (run->comm) stk_trainer_set_comm(run->trainer, run->comm);
    stk_trainer_set_beat(run->trainer, run->beat);
    run->train = train;
    run->model = model;
    return STK_OK;
done:
    stk_dataset_free(train);
    stk_model_free(model);
    return status;
}

/* Where a recipe comes from: a file, or a text with the record of its data. */
typedef struct recipe_place {
    const char *path;          /* a file; NULL: the texts */
    bool is_run;               /* the file is a run's */
    const char *record_folder; /* whose data.json may stand for the data; NULL: none */
    const char *recipe, *record;
} recipe_place;

static stk_status read_recipe(const recipe_place *place, const stk_run_options *options, stk_recipe **out)
{
    if (place->path) {
        STK_RETURN_IF_ERROR(stk_recipe_read(place->path, options->set, options->n_set, out));
        if (place->record_folder) STK_RETURN_IF_ERROR(stk_data_record_read(place->record_folder, &(*out)->record));
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(
        stk_recipe_parse("the recipe inside", place->recipe, strlen(place->recipe), options->set, options->n_set, out));
    return stk_data_record_parse("the record of the data", place->record, strlen(place->record), &(*out)->record);
}

/* A run that was made of weights alone has a stand-in for its data, which are not to be looked for. Other runs have
 * absolute paths. */
static stk_status refuse_stand_in(const stk_recipe *recipe)
{
    const stk_yaml_node *source = recipe->part[STK_PART_TRAIN].source;
    if (!source || strcmp(source->key, "images") != 0 || strcmp(source->text, STK_NO_DATA) != 0) return STK_OK;
    return stk_yaml_fail(source,
                         "this run was made of weights alone and knows no data: import the file with --recipe, whose "
                         "data are then evaluated on, or name data here");
}

/* Nothing learns from a run's folder: what a step asks of its batch need not be true of evaluation's. */
static void forget_steps(stk_recipe *recipe)
{
    recipe->part[STK_PART_TRAIN].drop_remainder = false;
    if (recipe->config.micro_batch > recipe->batch) recipe->config.micro_batch = recipe->batch;
    if (recipe->config.accumulate > recipe->batch) recipe->config.accumulate = recipe->batch;
}

static stk_status open_recipe(const recipe_place *place, const stk_run_options *options, stk_run **out)
{
    static const stk_run_options none = {.set = NULL};
    stk_run *run = calloc(1, sizeof(*run));
    stk_status status;
    *out = NULL;
    if (!run) return stk_fail_memory(sizeof(*run));
    run->options = options ? *options : none;
    run->lock_fd = run->metrics.fd = -1;
    run->saved_state.step = -1;
    run->last_loss = NAN;
    STK_TRY(stk_run_open_ranks(run));
    STK_TRY(stk_run_open_beats(run));
    /* Before the data are looked at, which may take long. */
    if (run->options.dump_graph) STK_TRY(stk_engine_check_pass(run->options.dump_graph));
    STK_TRY(read_recipe(place, &run->options, &run->recipe));
    STK_TRY(stk_recipe_want_model(run->recipe));
    if (!place->is_run && !run->recipe->record && run->recipe->device)
        STK_TRY(stk_engine_check_device(run->recipe->device));
    if (!run->recipe->record && place->is_run) STK_TRY(refuse_stand_in(run->recipe));
    if (!run->recipe->record) STK_TRY(stk_recipe_find_data(run->recipe));
    /* A run's own recipe has it, or is of a time when only the size told it. */
    STK_TRY(stk_build_fill_vocabulary(run->recipe, !place->is_run && !run->recipe->record));
    if (place->is_run) forget_steps(run->recipe);
    stk_recipe_print(run->recipe, &run->recipe_text);
    STK_TRY(stk_text_status(&run->recipe_text));
    STK_TRY(build_parts(run));
    fill_info(run);
done:
    status = stk_run_end_beats(run, stk_run_agree(run, status));
    if (status == STK_OK)
        *out = run;
    else
        stk_run_close(run);
    return status;
}

static stk_status open_and_name(const recipe_place *place, const stk_run_options *options, stk_run **out)
{
    STK_RETURN_IF_ERROR(open_recipe(place, options, out));
    stk_run *run = *out;
    int n = run->options.out ? snprintf(run->folder, sizeof(run->folder), "%s", run->options.out)
                             : snprintf(run->folder, sizeof(run->folder), "runs/%s", run->recipe->name);
    if (n > 0 && n < (int)sizeof(run->folder)) return STK_OK;
    stk_run_close(run);
    *out = NULL;
    return stk_fail(STK_INVALID, "the run folder's name is %s", n > 0 ? "too long" : "empty");
}

stk_status stk_run_open(const char *recipe, const stk_run_options *options, stk_run **out)
{
    STK_NEED(recipe);
    STK_NEED(out);
    return open_and_name(&(recipe_place){.path = recipe}, options, out);
}

stk_status stk_run_open_text(const char *recipe, const char *record, const stk_run_options *options, stk_run **out)
{
    return open_and_name(&(recipe_place){.recipe = recipe, .record = record}, options, out);
}

void stk_run_stop(stk_run *run)
{
    if (!run) return;
    stk_trainer_stop(run->trainer);
}

void stk_run_close(stk_run *run)
{
    if (!run) return;
    stk_run_close_states(run);
    stk_checkpoint_writer_close(run->writer);
    stk_metrics_close(&run->metrics);
    stk_observe_close(&run->observer);
    stk_publisher_close(&run->publisher);
    stk_chip_close(&run->chip);
    stk_trainer_free(run->trainer);
    stk_dataset_free(run->valid);
    stk_dataset_free(run->test);
    stk_recipe_free(run->recipe);
    stk_text_free(&run->recipe_text);
    stk_folder_close(run);
    stk_run_close_beats(run);
    stk_comm_close(run->comm);
    free(run->probability);
    free(run->sample);
    free(run);
}

const char *stk_run_skipped(const stk_run *run, int64_t i)
{
    if (!run) return NULL;
    return stk_trainer_skipped(run->trainer, i);
}

int64_t stk_run_n_skipped(const stk_run *run)
{
    if (!run) return 0;
    stk_train_result result;
    stk_trainer_get_result(run->trainer, &result);
    return result.n_skipped;
}

const char *stk_run_saved(const stk_run *run)
{
    if (!run) return NULL;
    return run->saved[0] && stk_path_is_dir(run->saved) ? run->saved : NULL;
}

static stk_status make_model(void *user, int64_t length, stk_model **out)
{
    const stk_run *run = user;
    stk_recipe recipe = *run->recipe;
    recipe.open_length = length;
    return stk_build_model(&recipe, run->train, out);
}

stk_trainer_config stk_run_config(stk_run *run)
{
    stk_trainer_config config = stk_build_config(run->recipe);
    config.valid = run->valid;
    stk_trainer_count_held(run->trainer, run->test ? stk_dataset_held_bytes(run->test) : 0);
    if (!run->recipe->pad) return config;
    config.make_model = make_model;
    config.model_user = run;
    return config;
}

static void forward_dump(void *user, const char *pass, const char *text)
{
    stk_run *run = user;
    if (run->options.dump) run->options.dump(run->options.user, pass, text);
}

void stk_run_dump(stk_run *run, stk_trainer_config *config)
{
    config->dump_graph = run->options.dump_graph;
    config->dump = forward_dump;
    config->event_user = run;
}

size_t stk_run_copy_bytes(const stk_recipe *recipe, size_t limit, size_t peak_bytes, size_t variable_bytes)
{
    bool goes_on = recipe->epochs > 1 || !recipe->checkpoint_by_epoch;
    return goes_on && (limit == 0 || peak_bytes + variable_bytes <= limit) ? variable_bytes : 0;
}

/* --- evaluation --- */

static void forward_event(void *user, const stk_train_event *event)
{
    stk_run_emit(user, event);
}

static stk_status load_best(stk_run *run)
{
    char path[STK_PATH_BYTES];
    stk_text warnings = {0};
    const stk_named_tensor *tensors;
    size_t n_tensors;
    stk_train_state state;
    stk_status status;
    STK_TRY(stk_checkpoint_pick(run->folder, run->options.checkpoint, path, sizeof(path), &warnings));
    if (warnings.n) stk_run_warn(run, stk_text_get(&warnings));
    STK_TRY(stk_trainer_tensors(run->trainer, &tensors, &n_tensors));
    STK_TRY(stk_checkpoint_load(path, tensors, n_tensors, false, &state, NULL));
    STK_TRY(stk_trainer_put_tensors(run->trainer));
    run->loaded_step = state.step;
done:
    stk_text_free(&warnings);
    return status;
}

stk_status stk_run_open_folder(const char *folder, const stk_run_options *options, stk_run **out)
{
    char path[STK_PATH_BYTES], hint[STK_PATH_HINT];
    stk_run *run = NULL;
    stk_status status;
    *out = NULL;
    STK_TRY(stk_path_join(path, sizeof(path), folder, "recipe.yaml"));
    if (!stk_path_is_dir(folder))
        STK_TRY(stk_fail(STK_NOT_FOUND, "there is no run folder '%s'%s", folder, stk_path_hint(folder, hint)));
    if (!stk_path_exists(path)) STK_TRY(stk_fail(STK_NOT_FOUND, "folder '%s' holds no run: no recipe.yaml", folder));
    recipe_place place = {
        .path = path, .is_run = true, .record_folder = options && options->without_data ? folder : NULL};
    STK_TRY(open_recipe(&place, options, &run));
    if (snprintf(run->folder, sizeof(run->folder), "%s", folder) >= (int)sizeof(run->folder))
        STK_TRY(stk_fail(STK_INVALID, "the run folder's name is too long"));
    run->info.folder = run->folder;
    *out = run;
    return STK_OK;
done:
    stk_run_close(run);
    return status;
}

stk_status stk_run_load(const char *folder, const stk_run_options *options, stk_run **out)
{
    STK_NEED(folder);
    STK_NEED(out);
    stk_run *run;
    stk_status status;
    *out = NULL;
    STK_RETURN_IF_ERROR(stk_run_open_folder(folder, options, &run));
    stk_trainer_config config = stk_run_config(run);
    config.on_event = forward_event;
    config.event_user = run;
    stk_trainer_configure(run->trainer, &config);
    STK_TRY(stk_trainer_prepare(run->trainer, run->recipe->epochs));
    STK_TRY(load_best(run));
    *out = run;
    return STK_OK;
done:
    stk_run_close(run);
    return status;
}

int64_t stk_run_step(const stk_run *run)
{
    if (!run) return 0;
    return run->loaded_step;
}

/* The training data as evaluation sees it: all samples, those that fill no batch, too, and each once, so that none
 * takes the place of one that is skipped unless samples are mixed or masked. Stages stay as they are. */
static stk_status evaluate_train(stk_run *run, stk_metrics *out)
{
    stk_dataset *whole = NULL;
    stk_recipe_part *part = &run->recipe->part[STK_PART_TRAIN];
    const stk_recipe_part trained = *part;
    part->drop_remainder = false;
    if (!part->mixup && !part->cutmix && !part->masked) part->on_error = part->eval_on_error;
    stk_status status = stk_build_dataset(run->recipe, STK_PART_TRAIN, &whole);
    *part = trained;
    stk_trainer_set_whole(run->trainer, whole);
    if (status == STK_OK) status = stk_trainer_evaluate(run->trainer, whole, out);
    stk_trainer_set_whole(run->trainer, NULL);
    stk_dataset_free(whole);
    return status;
}

stk_status stk_run_evaluate(stk_run *run, const char *part, stk_metrics *out)
{
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    STK_NEED(part);
    STK_NEED(out);
    const stk_dataset *dataset = NULL;
    if (run->recipe->record)
        return stk_fail(STK_INVALID, "the run was opened without its data, so there is nothing to evaluate on");
    if (!strcmp(part, "train")) return evaluate_train(run, out);
    if (!strcmp(part, "test"))
        dataset = run->test;
    else if (!strcmp(part, "valid"))
        dataset = run->valid;
    else
        return stk_fail(STK_INVALID, "no part '%s' of the data; there are train, valid and test", part);
    if (!dataset) return stk_fail(STK_NOT_FOUND, "the run's recipe has no %s data", part);
    return stk_trainer_evaluate(run->trainer, dataset, out);
}

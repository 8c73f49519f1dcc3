/* Making, configuring and freeing trainers, and the state that a checkpoint keeps. The loop is in loop.c. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "train/divided.h"
#include "train/outer.h"
#include "train/pixels.h"
#include "train/precision.h"
#include "train/replicas.h"
#include "train/shapes.h"
#include "train/trainer_state.h"
#include "train/whiten.h"
#include "weights/checkpoint.h"

/* What stk_trainer_new gives when there is no memory at all. */
static stk_trainer no_memory_trainer;

stk_trainer *stk_trainer_new(stk_model *model, stk_dataset *train, stk_optimizer optimizer)
{
    stk_trainer *trainer = calloc(1, sizeof(*trainer));
    if (!trainer) {
        stk_model_free(model);
        stk_dataset_free(train);
        return &no_memory_trainer;
    }
    trainer->model = model;
    trainer->dataset = train;
    trainer->optimizer = optimizer;
    trainer->config = stk_trainer_config_default();
    trainer->state.best_value = trainer->state.stop_value = INFINITY;
    trainer->state.best_epoch = -1;
    trainer->last_loss = NAN;
    snprintf(trainer->best_metric, STK_METRIC_NAME_BYTES, "loss"); /* as the default configuration has it */
    snprintf(trainer->stop_metric, STK_METRIC_NAME_BYTES, "loss");
    return trainer;
}

stk_status stk_trainer_status(const stk_trainer *trainer)
{
    return trainer == &no_memory_trainer || trainer->lost_text ? stk_fail_memory(sizeof(*trainer)) : STK_OK;
}

static char *copy_text(stk_trainer *trainer, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) trainer->lost_text = true;
    return copy;
}

static void free_groups(stk_trainer *trainer)
{
    for (int i = 0; i < trainer->n_groups; i++)
        free((char *)(uintptr_t)trainer->group[i].match);
    trainer->n_groups = 0;
}

void stk_trainer_configure(stk_trainer *trainer, const stk_trainer_config *config)
{
    if (!trainer) return;
    if (trainer == &no_memory_trainer || trainer->prepared) return;
    stk_replicas_free(trainer); /* of a try with another configuration */
    free(trainer->device);
    free(trainer->no_decay);
    free(trainer->dump_graph);
    free(trainer->recompute);
    free(trainer->trace);
    free(trainer->whiten_layer);
    if (config->valid) stk_dataset_hold(config->valid);
    stk_dataset_free((stk_dataset *)(uintptr_t)trainer->config.valid); /* as it was held */
    trainer->config = *config;
    trainer->lost_text = false;
    trainer->device = copy_text(trainer, config->device);
    trainer->no_decay = copy_text(trainer, config->no_decay);
    free_groups(trainer);
    for (int i = 0; config->groups && i < config->n_groups && i < STK_MOST_GROUPS; i++) {
        trainer->group[i] = config->groups[i];
        trainer->group[i].match = copy_text(trainer, config->groups[i].match);
        trainer->n_groups++;
    }
    trainer->dump_graph = copy_text(trainer, config->dump_graph);
    trainer->recompute = copy_text(trainer, config->recompute);
    trainer->config.trace = trainer->trace = copy_text(trainer, config->trace);
    snprintf(trainer->best_metric, STK_METRIC_NAME_BYTES, "%s", config->best_metric ? config->best_metric : "loss");
    snprintf(trainer->stop_metric, STK_METRIC_NAME_BYTES, "%s", config->stop_metric ? config->stop_metric : "loss");
    trainer->config.whiten.layer = trainer->whiten_layer = copy_text(trainer, config->whiten.layer);
    trainer->state.seed = config->seed;
    trainer->n_measures = config->measures ? config->n_measures : 0;
    if (trainer->n_measures > STK_MOST_MEASURES) trainer->n_measures = STK_MOST_MEASURES;
    if (trainer->n_measures > 0)
        memcpy(trainer->measure, config->measures, (size_t)trainer->n_measures * sizeof(*trainer->measure));
}

/* The engine is open, or there are none. */
static void free_tensors(stk_trainer *trainer)
{
    bool are_copies = trainer->engine && !stk_engine_device(trainer->engine)->class->on_host;
    for (size_t i = 0; are_copies && i < trainer->n_tensors; i++)
        if (trainer->variable[i] >= 0 && !trainer->tensor[i].source) free(trainer->tensor[i].view.data);
    stk_divided_forget(trainer);
    free(trainer->tensor);
    free(trainer->variable);
}

void stk_trainer_free(stk_trainer *trainer)
{
    if (!trainer || trainer == &no_memory_trainer) return;
    if (trainer->engine) (void)stk_engine_finish(trainer->engine); /* It may be reading from the loader's batches. */
    stk_loader_close(trainer->loader);
    stk_memory_free(trainer->data_memory);
    free_tensors(trainer);
    stk_engine_close(trainer->engine);
    stk_replicas_free(trainer);
    stk_shapes_free(&trainer->shapes);
    free(trainer->fed_dataset);
    if (!trainer->is_replica) stk_model_free(trainer->model);
    if (!trainer->is_replica) stk_dataset_free(trainer->dataset);
    stk_dataset_free((stk_dataset *)(uintptr_t)trainer->config.valid); /* as it was held */
    stk_skipped_free(&trainer->skipped);
    free(trainer->choices);
    free(trainer->weight);
    free_groups(trainer);
    free(trainer->train_sums);
    free(trainer->eval_sums);
    free(trainer->step_s);
    free(trainer->device);
    free(trainer->no_decay);
    free(trainer->dump_graph);
    free(trainer->recompute);
    free(trainer->trace);
    free(trainer->whiten_layer);
    free(trainer);
}

void stk_trainer_set_hooks(stk_trainer *trainer, const stk_trainer_hooks *hooks)
{
    if (trainer != &no_memory_trainer) trainer->hooks = *hooks;
}

void stk_trainer_set_comm(stk_trainer *trainer, stk_comm *comm)
{
    if (trainer != &no_memory_trainer) trainer->comm = comm;
}

void stk_trainer_set_beat(stk_trainer *trainer, stk_beat *beat)
{
    trainer->beat = beat;
}

void stk_trainer_stop(stk_trainer *trainer)
{
    if (!trainer) return;
    trainer->stop = 1;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const stk_named_tensor *)a)->name, ((const stk_named_tensor *)b)->name);
}

static int find_variable(const stk_engine *engine, const char *name)
{
    int i = 0;
    while (strcmp(stk_engine_variable(engine, i).name, name))
        i++;
    return i;
}

/* Where the device is not on the host, tensors are copies in the host's memory. */
static stk_status list_tensors(stk_trainer *trainer)
{
    int n = stk_engine_n_variables(trainer->engine);
    trainer->tensor = calloc((size_t)n + 2, sizeof(*trainer->tensor));
    trainer->variable = calloc((size_t)n + 2, sizeof(*trainer->variable));
    if (!trainer->tensor || !trainer->variable) return stk_fail_memory((size_t)n * sizeof(*trainer->tensor));
    for (int i = 0; i < n; i++) {
        stk_variable_view variable = stk_engine_variable(trainer->engine, i);
        size_t bytes = stk_desc_bytes(variable.view.desc);
        if (variable.n_parts) {
            trainer->tensor[trainer->n_tensors++] = stk_divided_tensor(trainer, &variable, i);
            continue;
        }
        if (!variable.view.data && !(variable.view.data = calloc(bytes + 1, 1))) return stk_fail_memory(bytes);
        trainer->tensor[trainer->n_tensors++] = (stk_named_tensor){.name = variable.name, .view = variable.view};
    }
    if (trainer->train_sums) trainer->tensor[trainer->n_tensors++] = stk_measures_tensor(trainer);
    qsort(trainer->tensor, trainer->n_tensors, sizeof(*trainer->tensor), compare_names);
    for (size_t i = 0; i < trainer->n_tensors; i++)
        trainer->variable[i] = trainer->train_sums && trainer->tensor[i].view.data == trainer->train_sums
                                   ? -1
                                   : find_variable(trainer->engine, trainer->tensor[i].name);
    return STK_OK;
}

static stk_status check_parts(stk_trainer *trainer)
{
    STK_RETURN_IF_ERROR(stk_trainer_status(trainer));
    if (!trainer->model || !trainer->dataset) return stk_fail(STK_INVALID, "a trainer needs a model and a data set");
    STK_RETURN_IF_ERROR(stk_dataset_status(trainer->dataset));
    STK_RETURN_IF_ERROR(stk_model_status(trainer->model));
    if (stk_model_get_loss(trainer->model).id < 0)
        return stk_fail(STK_INVALID, "the model has no loss (stk_model_loss was not called)");
    if (stk_dataset_batch_size(trainer->dataset) < 1)
        return stk_fail(STK_INVALID, "the training data is not cut into batches (stk_dataset_batch was not called)");
    STK_RETURN_IF_ERROR(stk_step_check_count(trainer->dataset));
    if (stk_dataset_n_batches(trainer->dataset) < 1)
        return stk_fail(STK_INVALID, "the training data has %lld samples, fewer than a batch of %lld",
                        (long long)stk_dataset_count(trainer->dataset),
                        (long long)stk_dataset_batch_size(trainer->dataset));
    if (trainer->dataset->on_error == STK_ON_ERROR_SKIP)
        return stk_fail(STK_INVALID, "a training step needs full batches, so that no sample can be left out: replace "
                                     "corrupt records (STK_ON_ERROR_REPLACE)");
    STK_RETURN_IF_ERROR(stk_schedule_check(&trainer->config.schedule));
    STK_RETURN_IF_ERROR(stk_whiten_check(stk_model_graph(trainer->model), &trainer->config.whiten));
    return stk_step_check_dataset(trainer, trainer->dataset);
}

static void warn_statistics(stk_trainer *trainer)
{
    char text[200];
    if (trainer->choice.n_micro < 2 || !stk_memory_has_batch_norm(trainer)) return;
    snprintf(text, sizeof(text),
             "batch norm takes its statistics from micro-batches of %lld samples, not from the batch",
             (long long)trainer->choice.micro);
    stk_train_event event = {.kind = STK_EVENT_WARNING, .text = text};
    stk_trainer_emit(trainer, &event);
}

static void warn_bits(stk_trainer *trainer)
{
    if (stk_engine_device(trainer->engine)->caps->deterministic) return;
    stk_train_event event = {.kind = STK_EVENT_WARNING,
                             .text = "this device does not give the same bits each time: a run that is repeated or "
                                     "resumed differs by rounding"};
    stk_trainer_emit(trainer, &event);
}

static void emit_plan(stk_trainer *trainer)
{
    stk_text text = {0};
    const stk_device *device = stk_engine_device(trainer->engine);
    stk_program_info info = stk_program_get_info(trainer->train.program);
    stk_model_size size = stk_model_get_size(trainer->model);
    stk_device_print_name(device, &text);
    stk_text_add(&text, " (");
    device->class->describe(device, &text);
    stk_text_add(&text, ")");
    size_t n = trainer->comm ? (size_t)trainer->comm->n_here : 1; /* each replica on this host has the same */
    trainer->result.peak_planned_bytes = info.arena_bytes + info.variable_bytes + info.packed_bytes;
    trainer->result.peak_used_bytes = info.used_bytes + info.variable_bytes + info.packed_bytes;
    trainer->result.peak_planned_bytes *= n;
    trainer->result.peak_used_bytes *= n;
    stk_train_event event = {.kind = STK_EVENT_PLAN,
                             .n_steps = trainer->n_steps,
                             .n_epochs = trainer->n_epochs,
                             .n_batches = trainer->n_batches,
                             .text = stk_text_get(&text),
                             .precision = trainer->result.precision,
                             .n_parameters = size.n_parameters,
                             .forward_flops = size.forward_flops,
                             .peak_planned_bytes = trainer->result.peak_planned_bytes,
                             .variable_bytes = stk_divided_whole_bytes(trainer),
                             .program_bytes = n * info.program_bytes,
                             .n_replicas = stk_comm_n_ranks(trainer->comm),
                             .n_kept = info.n_kept,
                             .n_recomputed = info.n_recomputed,
                             .n_micro = trainer->choice.n_micro,
                             .micro_batch = trainer->choice.micro,
                             .expected_slowdown = trainer->choice.slowdown,
                             .step_flops = info.flops * stk_comm_n_ranks(trainer->comm),
                             .recompute_flops = info.recompute_flops,
                             .memory_limit_bytes = device->class->on_host ? 0 : trainer->config.memory_limit_bytes,
                             .builds_kernels = !device->class->on_host,
                             .compiles_steps = device->class->compiles_steps};
    stk_trainer_emit(trainer, &event);
    stk_text_free(&text);
}

static stk_status check_metrics(const stk_trainer *trainer)
{
    stk_status status = stk_metric_check(trainer, trainer->best_metric);
    if (status != STK_OK) return stk_fail_prefix(status, "the best checkpoint: ");
    status = trainer->config.patience > 0 ? stk_metric_check(trainer, trainer->stop_metric) : STK_OK;
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "stopping early: ");
}

stk_status stk_trainer_open(stk_trainer *trainer)
{
    if (trainer->engine) return stk_memory_ask_device(trainer);
    STK_RETURN_IF_ERROR(check_parts(trainer));
    if (trainer->dump_graph) STK_RETURN_IF_ERROR(stk_engine_check_pass(trainer->dump_graph));
    STK_RETURN_IF_ERROR(stk_replicas_begin(trainer));
    stk_device_config device = {.n_threads = trainer->config.n_threads};
    device.default_kernels = trainer->config.deterministic;
    if (trainer->n_replicas || trainer->is_replica) device.rank = trainer->comm->rank;
    STK_RETURN_IF_ERROR(
        stk_engine_open(trainer->device ? trainer->device : "cpu", &device, trainer->config.seed, &trainer->engine));
    if (trainer->config.deterministic && !stk_engine_device(trainer->engine)->caps->deterministic)
        return stk_fail(STK_UNSUPPORTED, "'deterministic' is asked for, and this device does not repeat its bits");
    if (trainer->config.strict && !stk_engine_device(trainer->engine)->class->on_host)
        return stk_fail(STK_UNSUPPORTED, "'strict' is for the processor: leave out one of it and this device");
    STK_RETURN_IF_ERROR(stk_memory_ask_device(trainer));
    stk_replicas_divide_memory(trainer);
    stk_engine_limit_compiled(trainer->engine, trainer->config.memory_limit_bytes);
    /* Ranks would disturb each other, and choose apart. */
    bool is_alone = stk_comm_n_ranks(trainer->comm) < 2 && !trainer->config.strict;
    bool may_measure = !trainer->config.deterministic && is_alone;
    stk_engine_measure(trainer->engine, may_measure ? STK_MEASURES_NO_MORE : STK_MEASURES_NOTHING);
    return STK_OK;
}

/* Kernels are measured for what is compiled before the first step. */
static void allow_measuring(stk_trainer *trainer, bool allowed)
{
    const stk_device *device = stk_engine_device(trainer->engine);
    if (device->measuring != STK_MEASURES_NOTHING)
        stk_engine_measure(trainer->engine, allowed ? STK_MEASURES : STK_MEASURES_NO_MORE);
}

static stk_status take_choices(stk_trainer *trainer)
{
    if (!trainer->choices) return STK_OK;
    stk_status status = stk_engine_take_choices(trainer->engine, trainer->choices);
    if (status != STK_MISMATCH && status != STK_CORRUPT) return status;
    stk_text text = {0};
    stk_text_add(&text, "the kernels of the run before are not used, and losses may differ from its by rounding: %s",
                 stk_error_text());
    stk_train_event event = {.kind = STK_EVENT_WARNING, .text = stk_text_get(&text)};
    stk_trainer_emit(trainer, &event);
    stk_text_free(&text);
    return STK_OK;
}

stk_status stk_trainer_keep_choices(stk_trainer *trainer, const char *text)
{
    free(trainer->choices);
    trainer->choices = strdup(text);
    return trainer->choices ? STK_OK : stk_fail_memory(strlen(text) + 1);
}

void stk_trainer_print_choices(const stk_trainer *trainer, stk_text *out)
{
    if (trainer->engine) stk_engine_print_choices(trainer->engine, out);
}

stk_status stk_trainer_prepare(stk_trainer *trainer, int64_t n_epochs)
{
    if (trainer->prepared) return STK_OK;
    STK_RETURN_IF_ERROR(check_parts(trainer));
    if (n_epochs < 1) return stk_fail(STK_INVALID, "%lld epochs: at least 1 is needed", (long long)n_epochs);
    trainer->n_epochs = n_epochs;
    trainer->n_batches = stk_dataset_n_batches(trainer->dataset);
    trainer->n_steps = trainer->n_batches * n_epochs;
    if (!trainer->step_s) trainer->step_s = calloc(2 * N_STEP_TIMES, sizeof(*trainer->step_s));
    if (!trainer->step_s) return stk_fail_memory(2 * N_STEP_TIMES * sizeof(*trainer->step_s));
    STK_RETURN_IF_ERROR(stk_trainer_open(trainer));
    const stk_device *device = stk_engine_device(trainer->engine);
    if (device->absent[0])
        return stk_fail(STK_NO_DEVICE, "'%s:%s' is not here: 'stoker plan' compiles a step for it, and nothing runs",
                        device->class->name, device->absent);
    STK_RETURN_IF_ERROR(stk_trainer_choose_precision(trainer));
    STK_RETURN_IF_ERROR(stk_trainer_choose_fed(trainer));
    STK_RETURN_IF_ERROR(take_choices(trainer));
    allow_measuring(trainer, true);
    STK_RETURN_IF_ERROR(stk_shapes_prepare(trainer));
    STK_RETURN_IF_ERROR(check_metrics(trainer));
    STK_RETURN_IF_ERROR(stk_outer_check(trainer));
    STK_RETURN_IF_ERROR(stk_outer_prepare(trainer));
    STK_RETURN_IF_ERROR(list_tensors(trainer));
    STK_RETURN_IF_ERROR(stk_replicas_prepare(trainer, n_epochs));
    /* Where a limit is tight, an evaluation that does not fit is to be known before the first step. */
    if (trainer->config.valid && trainer->reserved_bytes) {
        STK_RETURN_IF_ERROR(stk_trainer_prepare_eval(trainer, trainer->config.valid));
        if (trainer->eval.program) stk_memory_note_program(trainer, trainer->eval.program);
    }
    allow_measuring(trainer, false);
    trainer->prepared = true;
    emit_plan(trainer);
    warn_statistics(trainer);
    warn_bits(trainer);
    return STK_OK;
}

stk_status stk_trainer_tensors(stk_trainer *trainer, const stk_named_tensor **out, size_t *n)
{
    if (!trainer->prepared) return stk_fail(STK_INVALID, "the trainer is not prepared yet");
    stk_trainer_keep_skipped(trainer, trainer->loader); /* It is saved with them. */
    bool are_copies = !stk_engine_device(trainer->engine)->class->on_host;
    for (size_t i = 0; are_copies && i < trainer->n_tensors; i++)
        if (trainer->variable[i] >= 0 && !trainer->tensor[i].source)
            STK_RETURN_IF_ERROR(
                stk_engine_read_variable(trainer->engine, trainer->variable[i], trainer->tensor[i].view.data));
    *out = trainer->tensor;
    *n = trainer->n_tensors;
    return STK_OK;
}

stk_status stk_trainer_put_tensors(stk_trainer *trainer)
{
    bool are_copies = !stk_engine_device(trainer->engine)->class->on_host;
    stk_engine_changed(trainer->engine);
    for (size_t i = 0; are_copies && i < trainer->n_tensors; i++)
        if (trainer->variable[i] >= 0 && !trainer->tensor[i].source)
            STK_RETURN_IF_ERROR(
                stk_engine_write_variable(trainer->engine, trainer->variable[i], trainer->tensor[i].view.data));
    return STK_OK;
}

bool stk_trainer_is_settled(const stk_trainer *trainer)
{
    return trainer->n_begun == 0 && !trainer->is_torn && (!stk_divided_exist(trainer) || trainer->shards_are_open);
}

void stk_trainer_get_state(const stk_trainer *trainer, stk_train_state *out)
{
    *out = trainer->state;
    out->skipped = &trainer->skipped;
}

stk_status stk_trainer_set_state(stk_trainer *trainer, const stk_train_state *state)
{
    if (!trainer->prepared) return stk_fail(STK_INVALID, "the trainer is not prepared yet");
    if (state->seed != trainer->config.seed)
        return stk_fail(STK_MISMATCH, "the state is of a run with seed %llu, this one has %llu",
                        (unsigned long long)state->seed, (unsigned long long)trainer->config.seed);
    if (state->i_batch < 0 || state->i_batch > trainer->n_batches || state->epoch < 0 ||
        state->step != state->epoch * trainer->n_batches + state->i_batch)
        return stk_fail(STK_MISMATCH,
                        "the state stands at batch %lld of epoch %lld, step %lld, which this run cannot have",
                        (long long)state->i_batch, (long long)state->epoch + 1, (long long)state->step);
    stk_loader_close(trainer->loader);
    trainer->loader = NULL;
    trainer->state = *state;
    return STK_OK;
}

stk_status stk_trainer_load_skipped(stk_trainer *trainer, const char *checkpoint)
{
    return stk_checkpoint_load_skipped(checkpoint, &trainer->skipped);
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* The median step, the first three left out where more are known. */
static double median_step_s(const stk_trainer *trainer)
{
    int64_t n = trainer->n_step_times < N_STEP_TIMES ? trainer->n_step_times : N_STEP_TIMES;
    int64_t from = trainer->n_step_times <= N_STEP_TIMES && n > 3 ? 3 : 0;
    if (n <= from) return 0;
    float *sorted = trainer->step_s + N_STEP_TIMES; /* room for it, so that the figure is not lost for want of memory */
    memcpy(sorted, trainer->step_s + from, (size_t)(n - from) * sizeof(*sorted));
    qsort(sorted, (size_t)(n - from), sizeof(*sorted), compare_floats);
    return (double)sorted[(n - from) / 2];
}

/* Of one sample, where the model takes "tokens"; else 0. */
static int64_t count_tokens(const stk_trainer *trainer)
{
    if (trainer == &no_memory_trainer || !trainer->model) return 0;
    stk_graph *graph = stk_model_graph(trainer->model);
    stk_value tokens = graph ? stk_graph_find(graph, STK_OP_input, "tokens") : (stk_value){NULL, -1};
    if (tokens.id < 0) return 0;
    stk_shape shape = stk_value_shape(tokens);
    return stk_shape_product(shape, 1, shape.rank);
}

void stk_trainer_get_result(const stk_trainer *trainer, stk_train_result *out)
{
    if (!out) return;
    if (!trainer) {
        *out = (stk_train_result){0};
        return;
    }
    struct rusage usage;
    double median = median_step_s(trainer);
    *out = trainer->result;
    out->n_steps = trainer->state.step;
    out->step_ms_median = 1e3 * median;
    out->samples_per_s = median > 0 ? (double)stk_trainer_step_rows(trainer) / median : 0;
    out->samples_per_s_overall =
        trainer->train_ns > 0 ? (double)trainer->n_rows / ((double)trainer->train_ns * 1e-9) : 0;
    out->tokens_per_s = out->samples_per_s * (double)count_tokens(trainer);
    if (trainer->shapes.varies) { /* A step says nothing of the next. */
        out->samples_per_s = out->samples_per_s_overall;
        out->tokens_per_s = 0;
    }
    if (trainer->engine && trainer->prepared) out->time = stk_timing_get_shares(trainer);
    out->input_wait_share = trainer->train_ns > 0 ? (double)trainer->wait_ns / (double)trainer->train_ns : 0;
    out->n_skipped = trainer->skipped.n_keys;
    if (getrusage(RUSAGE_SELF, &usage) == 0) out->peak_rss_bytes = (size_t)usage.ru_maxrss * 1024;
}

const char *stk_trainer_skipped(const stk_trainer *trainer, int64_t i)
{
    if (!trainer) return NULL;
    return i >= 0 && (size_t)i < trainer->skipped.n_texts ? trainer->skipped.text[i] : NULL;
}

const float *stk_trainer_gradient(const stk_trainer *trainer, const char *name, size_t *n)
{
    char output[512];
    stk_tensor_desc desc;
    if (snprintf(output, sizeof(output), "grad/%s", name) >= (int)sizeof(output)) return NULL;
    const float *data = stk_program_output(trainer->train.program, output, &desc);
    if (!data || desc.dtype != STK_F32) return NULL;
    *n = (size_t)stk_shape_count(desc.shape);
    return data;
}

/* Evaluation over a data set, and prediction for one sample, with the parameters as they are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/pixels.h"
#include "train/replicas.h"
#include "train/shapes.h"
#include "train/trainer_state.h"

/* Whether each batch asks for a program of its shape. Once one did, trainer->eval may be of any. */
static bool varies(const stk_trainer *trainer, const stk_dataset *dataset)
{
    return trainer->shapes.varies || trainer->shapes.eval.n > 0 || stk_shapes_vary(dataset);
}

/* The program for this batch size; the one before is kept by the engine, since few sizes ever occur. */
stk_status stk_trainer_prepare_eval(stk_trainer *trainer, const stk_dataset *dataset)
{
    int64_t batch = stk_dataset_batch_size(dataset);
    if (batch < 1) return stk_fail(STK_INVALID, "the data to evaluate on is not cut into batches");
    STK_RETURN_IF_ERROR(stk_step_check_count(dataset));
    bool is_u8 = !varies(trainer, dataset) && stk_trainer_takes_u8(trainer, dataset);
    bool is_same = trainer->eval.program && trainer->eval.batch == batch && trainer->eval_is_u8 == is_u8;
    if (is_same && !varies(trainer, dataset)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_step_check_dataset(trainer, dataset));
    float *weight = realloc(trainer->weight, (size_t)batch * sizeof(*weight));
    if (!weight) return stk_fail_memory((size_t)batch * sizeof(*weight));
    trainer->weight = weight;
    trainer->eval_is_u8 = is_u8;
    return varies(trainer, dataset) ? STK_OK : stk_step_compile_eval(trainer, batch, &trainer->eval);
}

static void weigh_rows(stk_trainer *trainer, int64_t n_real)
{
    for (int64_t i = 0; i < trainer->eval.batch; i++)
        trainer->weight[i] = i < n_real ? 1.0f : 0.0f;
    /* Rows that are compared with each other would be compared with padding. */
    if (n_real < trainer->eval.batch && stk_model_is_embedding(trainer->model))
        memset(trainer->weight, 0, (size_t)trainer->eval.batch * sizeof(*trainer->weight));
}

typedef struct eval_sums {
    double loss, weight, n_correct, n_top5;
    int64_t n_real[STK_RUNS_KEPT]; /* of the runs that are unread, a ring */
    int64_t n_runs, n_read;
    stk_neighbours rows; /* for measures that need all of them */
} eval_sums;

/* Enqueues the program on the batch, and waits until the batch has been read. */
static stk_status run_batch(stk_trainer *trainer, const stk_dataset *dataset, const stk_batch *batch, eval_sums *sums)
{
    if (varies(trainer, dataset)) STK_RETURN_IF_ERROR(stk_shapes_pick_eval(trainer, dataset, batch));
    stk_program *program = trainer->eval.program;
    stk_step_bind(&trainer->eval, batch);
    weigh_rows(trainer, stk_batch_count(batch));
    sums->n_real[sums->n_runs++ % STK_RUNS_KEPT] = stk_batch_count(batch);
    STK_RETURN_IF_ERROR(stk_program_set(program, trainer->eval.weight, trainer->weight));
    STK_RETURN_IF_ERROR(stk_program_run(program));
    return stk_program_wait_inputs(program);
}

/* Adds the results of the oldest of n_unread runs, until no more than n_kept are unread. */
static stk_status read_runs(const stk_trainer *trainer, int *n_unread, int n_kept, eval_sums *sums)
{
    for (; *n_unread > n_kept; --*n_unread) {
        STK_RETURN_IF_ERROR(stk_program_wait(trainer->eval.program, *n_unread - 1));
        sums->loss += stk_step_scalar(&trainer->eval, "loss_sum");
        sums->weight += stk_step_scalar(&trainer->eval, "loss_weight");
        sums->n_correct += stk_step_scalar(&trainer->eval, "n_correct");
        sums->n_top5 += stk_step_scalar(&trainer->eval, "n_top5");
        stk_measures_add(trainer, &trainer->eval, trainer->eval_sums);
        int64_t n_real = sums->n_real[sums->n_read++ % STK_RUNS_KEPT];
        STK_RETURN_IF_ERROR(stk_measures_keep(trainer, &trainer->eval, n_real, &sums->rows));
    }
    return STK_OK;
}

/* How a rank takes part. A sample is looked at by one of them; where all have to be together, or some would be dropped
 * that one rank alone does not drop, each rank looks at all. */
static bool is_shared_out(const stk_trainer *trainer, const stk_dataset *dataset)
{
    return trainer->comm && !stk_model_is_embedding(trainer->model) && !dataset->drop_remainder;
}

/* Whether there is anything for this rank. */
static bool has_share(const stk_trainer *trainer, const stk_dataset *dataset)
{
    int64_t n = dataset->buckets.n ? stk_dataset_n_batches(dataset) : stk_dataset_count(dataset);
    return !is_shared_out(trainer, dataset) || trainer->comm->rank < n;
}

/* Over all ranks. *n: samples; stopped: some rank was. */
static stk_status add_ranks(stk_trainer *trainer, const stk_dataset *dataset, eval_sums *sums, int64_t *n,
                            bool *stopped)
{
    double all[] = {*stopped, (double)*n, sums->loss, sums->weight, sums->n_correct, sums->n_top5};
    bool shared = is_shared_out(trainer, dataset);
    STK_RETURN_IF_ERROR(stk_replicas_add(trainer, all, shared ? 6 : 1));
    *stopped = all[0] > 0;
    if (!shared) return STK_OK;
    *n = (int64_t)all[1];
    sums->loss = all[2];
    sums->weight = all[3];
    sums->n_correct = all[4];
    sums->n_top5 = all[5];
    return trainer->eval_sums ? stk_replicas_add(trainer, trainer->eval_sums, stk_measures_n_sums(trainer)) : STK_OK;
}

/* As recipes name it. */
static const char *part_of(const stk_trainer *trainer, const stk_dataset *dataset)
{
    if (dataset == trainer->config.valid) return "valid";
    return dataset == trainer->dataset || dataset == trainer->whole ? "train" : "test";
}

static stk_status fail_empty(const stk_dataset *dataset, const stk_loader *loader)
{
    stk_loader_stats stats;
    stk_loader_get_stats(loader, &stats);
    if (stats.n_skipped == 0) return stk_fail(STK_INVALID, "there is nothing to evaluate on");
    int64_t n = stk_dataset_count(dataset), i = 0;
    while (stk_loader_skipped(loader, i + 1))
        i++;
    if (n < stats.n_skipped) n = stats.n_skipped;
    return stk_fail(STK_CORRUPT, "none of the %lld record%s could be read, the last one %s", (long long)n,
                    n == 1 ? "" : "s", stk_loader_skipped(loader, i));
}

stk_status stk_evaluate_rank(stk_trainer *trainer, const stk_dataset *dataset, stk_metrics *out)
{
    stk_status status;
    stk_loader *loader = NULL;
    stk_dataset *cut = NULL;
    const stk_batch *batch = NULL;
    eval_sums sums = {0};
    int64_t n = 0;
    int n_unread = 0, n_ahead = 0;
    bool stopped = false;
    stk_loader_config config = stk_loader_config_default();
    stk_beat_phase(trainer->beat, STK_PHASE_evaluation);
    STK_TRY(stk_dataset_status(dataset));
    STK_TRY(stk_trainer_prepare(trainer, trainer->n_epochs > 0 ? trainer->n_epochs : 1));
    STK_TRY(stk_trainer_prepare_eval(trainer, dataset));
    n_ahead = varies(trainer, dataset) ? 0 : stk_engine_runs_ahead(trainer->engine); /* Each shape has its own runs. */
    config.n_epochs = 1;
    if (is_shared_out(trainer, dataset)) {
        config.n_shards = trainer->comm->n_ranks;
        config.i_shard = trainer->comm->rank;
    }
    stk_measures_reset(trainer, trainer->eval_sums);
    if (trainer->eval_is_u8) STK_TRY(stk_trainer_cut_pixels(trainer, dataset, &cut));
    if (has_share(trainer, dataset)) STK_TRY(stk_trainer_open_loader(trainer, cut ? cut : dataset, config, &loader));
    while (loader && !stopped && (batch = stk_loader_next(loader))) {
        status = run_batch(trainer, dataset, batch, &sums);
        n += stk_batch_count(batch);
        stk_train_event event = {
            .kind = STK_EVENT_EVAL, .i_batch = stk_batch_index(batch) + 1, .n_batches = stk_dataset_n_batches(dataset)};
        n_unread += status == STK_OK;
        /* Before the batch is given back: on the host an output may be an input as it lies in the batch. */
        if (status == STK_OK) status = read_runs(trainer, &n_unread, n_ahead, &sums);
        stk_batch_release(batch);
        STK_TRY(status);
        stk_trainer_emit(trainer, &event);
        stopped = trainer->stop;
    }
    if (loader && !stopped) status = stk_loader_status(loader);
    if (status == STK_CORRUPT && dataset->on_error == STK_ON_ERROR_STOP)
        stk_fail(status, "%s; data.%s.on_error: skip leaves it out", stk_error_text(), part_of(trainer, dataset));
    STK_TRY(status);
    STK_TRY(read_runs(trainer, &n_unread, 0, &sums));
    STK_TRY(add_ranks(trainer, dataset, &sums, &n, &stopped));
    if (stopped) STK_TRY(stk_fail(STK_INTERRUPTED, "stopped while evaluating"));
    if (n == 0) STK_TRY(fail_empty(dataset, loader));
    double weight = stk_model_get_loss_weight(trainer->model).id >= 0 ? sums.weight : (double)n;
    *out = (stk_metrics){.loss = weight > 0 ? sums.loss / weight : 0, .accuracy = -1, .top5 = -1, .n_samples = n};
    if (trainer->has_classes) {
        out->accuracy = sums.n_correct / (double)n;
        if (trainer->has_top5) out->top5 = sums.n_top5 / (double)n;
    }
    if (trainer->is_language_model) out->perplexity = exp(out->loss);
    stk_measures_finish(trainer, trainer->eval_sums, out);
    STK_TRY(stk_measures_finish_rows(trainer, &sums.rows, out));
    /* Where each has looked at all, ranks of different processors may differ in the last bit, and then in what they
     * decide: the first one's judgement is everyone's. */
    STK_TRY(stk_replicas_take_first(trainer, out, sizeof(*out)));
done:
    stk_neighbours_free(&sums.rows);
    stk_trainer_keep_skipped(trainer, loader);
    if (status == STK_OK) status = stk_replicas_join_skipped(trainer);
    stk_loader_close(loader);
    free(cut);
    return status;
}

stk_status stk_trainer_predict(stk_trainer *trainer, const void *sample, float *out, int64_t n_out)
{
    if (!trainer) return stk_fail(STK_INVALID, "there is no trainer");
    stk_tensor_desc desc;
    STK_RETURN_IF_ERROR(stk_trainer_prepare(trainer, trainer->n_epochs > 0 ? trainer->n_epochs : 1));
    if (stk_model_get_output(trainer->model).id < 0)
        return stk_fail(STK_INVALID, "the model has no output to predict with (stk_model_output was not called)");
    if (!trainer->predict.program) STK_RETURN_IF_ERROR(stk_step_compile_predict(trainer, &trainer->predict));
    if (trainer->predict.n_bindings != 1)
        return stk_fail(STK_UNSUPPORTED, "prediction for models with %d inputs is not supported",
                        trainer->predict.n_bindings);
    stk_program_bind(trainer->predict.program, trainer->predict.binding[0].input, sample);
    STK_RETURN_IF_ERROR(stk_program_run(trainer->predict.program));
    STK_RETURN_IF_ERROR(stk_program_wait(trainer->predict.program, 0));
    const void *data = stk_program_output(trainer->predict.program, "prediction", &desc);
    if (desc.dtype != STK_F32 || stk_shape_count(desc.shape) != n_out)
        return stk_fail(STK_INVALID, "the model gives %lld numbers a sample, there is room for %lld",
                        (long long)stk_shape_count(desc.shape), (long long)n_out);
    memcpy(out, data, (size_t)n_out * sizeof(float));
    return STK_OK;
}

/* See train/replicas.h. */
#include "train/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "train/divided.h"
#include "train/shapes.h"
#include "train/trainer_state.h"

/* How long a rank waits for the others: reading a slow disk is no failure. */
enum { TIMEOUT_S = 600, MOST_TIMEOUT_S = 1000000 };
static const char TIMEOUT_VARIABLE[] = "STOKER_RANKS_WAIT";

/* --- making --- */

static stk_status check(const stk_trainer *trainer, int n_ranks)
{
    int64_t batch = stk_dataset_batch_size(trainer->dataset);
    if (stk_shapes_vary(trainer->dataset))
        return stk_fail(STK_UNSUPPORTED, "replicas need batches of one shape: pad all samples to one 'length'");
    if (stk_model_is_embedding(trainer->model))
        return stk_fail(STK_UNSUPPORTED,
                        "the loss compares the samples of a batch with each other, and replicas do not share them");
    if (batch % n_ranks != 0)
        return stk_fail(STK_INVALID, "a batch of %lld cannot be shared by %d replicas: make it a multiple of that",
                        (long long)batch, n_ranks);
    if (!trainer->dataset->drop_remainder && stk_dataset_count(trainer->dataset) % batch != 0)
        return stk_fail(STK_INVALID, "replicas need whole batches: drop what is left of an epoch");
    return STK_OK;
}

/* What would give other bits with other numbers of ranks. */
static stk_status check_strict(const stk_trainer *trainer, int n_ranks)
{
    const stk_trainer_config *config = &trainer->config;
    int n = config->strict;
    if (n == 0) return STK_OK;
    if (n < 2 || n > STK_MOST_STRICT || (n & (n - 1)) != 0)
        return stk_fail(STK_INVALID, "strict: %d is not a power of two from 2 to %d", n, STK_MOST_STRICT);
    if (n % n_ranks != 0)
        return stk_fail(STK_INVALID, "strict: %d parts of a batch cannot be shared by %d replicas: 1, 2, 4 ... %d can",
                        n, n_ranks, n);
    if (config->n_threads == 0)
        return stk_fail(STK_INVALID, "strict: bits depend on how many threads a replica has: give that number as "
                                     "'threads', which is then each replica's");
    if (config->accumulate > 0 || config->micro_batch > 0)
        return stk_fail(STK_INVALID, "strict: the parts of a batch are %d: leave out micro_batch and accumulate", n);
    if (config->sync_batch_norm || config->narrow_sums || config->outer.every > 0 ||
        config->shared == STK_SHARED_OPTIMIZER || config->lr_scaling != STK_LR_SCALING_NONE)
        return stk_fail(STK_UNSUPPORTED,
                        "strict does not go with what is another training with another number of "
                        "replicas: leave out sync, sync_batch_norm, sum_precision, lr_scaling and shard");
    if (trainer->comm && trainer->comm->any_order)
        return stk_fail(STK_UNSUPPORTED,
                        "strict: STOKER_MPI_ORDER=off has MPI add up as it likes; leave out one of them");
    stk_status status = check(trainer, n);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "strict: ");
}

/* A trainer for rank r, on the same model and data. Its texts are copied by configuring. */
static stk_status make_one(stk_trainer *first, stk_comm *comm, stk_trainer **out)
{
    stk_trainer *trainer =
        stk_trainer_new(NULL, NULL, first->optimizer); /* It would free what it is given and cannot keep. */
    STK_RETURN_IF_ERROR(stk_trainer_status(trainer));
    trainer->model = first->model;
    trainer->dataset = first->dataset;
    trainer->is_replica = true;
    trainer->held_bytes = first->held_bytes;
    stk_trainer_config config = first->config;
    config.n_replicas = 0;
    config.on_event = NULL;
    config.trace = config.dump_graph = NULL;
    config.device = first->device;
    config.no_decay = first->no_decay;
    config.recompute = first->recompute;
    config.groups = first->group;
    config.n_groups = first->n_groups;
    config.best_metric = first->best_metric;
    config.stop_metric = first->stop_metric;
    config.measures = first->measure;
    config.n_measures = first->n_measures;
    stk_trainer_configure(trainer, &config);
    trainer->comm = comm;
    *out = trainer; /* Freed with the others, also after a failure. */
    return stk_trainer_status(trainer);
}

stk_status stk_replicas_begin(stk_trainer *trainer)
{
    stk_trainer_config *config = &trainer->config;
    if (trainer->n_replicas) return STK_OK; /* An earlier try got as far as this. */
    int n = config->n_replicas, n_threads = config->n_threads ? config->n_threads : stk_n_cores();
    stk_comm *comm[STK_MOST_REPLICAS];
    if (n < 0 || n > STK_MOST_REPLICAS)
        return stk_fail(STK_INVALID, "%d replicas: 1 to %d are possible in one process", n, STK_MOST_REPLICAS);
    STK_RETURN_IF_ERROR(check_strict(trainer, trainer->comm ? trainer->comm->n_ranks : n > 1 ? n : 1));
    if (n > 1 && trainer->comm)
        return stk_fail(STK_UNSUPPORTED, "replicas in each of several processes are not supported: a process is one");
    if (trainer->comm) return check(trainer, trainer->comm->n_ranks);
    if (n < 2) return STK_OK;
    STK_RETURN_IF_ERROR(check(trainer, n));
    trainer->replica = calloc((size_t)n, sizeof(*trainer->replica));
    if (!trainer->replica) return stk_fail_memory((size_t)n * sizeof(*trainer->replica));
    STK_RETURN_IF_ERROR(stk_comm_open_local(n, comm));
    if (!config->strict) config->n_threads = n_threads > n ? n_threads / n : 1;
    trainer->comm = comm[0];
    trainer->n_replicas = n;
    for (int r = 1; r < n; r++)
        trainer->replica[r - 1].comm = comm[r];
    return STK_OK;
}

void stk_replicas_divide_memory(stk_trainer *trainer)
{
    stk_device_memory memory;
    size_t n = trainer->comm && !trainer->is_replica ? (size_t)trainer->comm->n_here : 1;
    bool is_own = stk_device_get_memory(stk_engine_device(trainer->engine), &memory) == STK_OK && memory.is_own;
    if (!is_own) trainer->config.memory_limit_bytes = (trainer->config.memory_limit_bytes + n - 1) / n;
    trainer->config.data_memory_bytes = (trainer->config.data_memory_bytes + n - 1) / n;
}

static stk_status find_timeout(int *timeout_ms)
{
    const char *text = getenv(TIMEOUT_VARIABLE);
    char *end = NULL;
    long s = text && text[0] ? strtol(text, &end, 10) : TIMEOUT_S;
    if ((end && *end) || s < 1 || s > MOST_TIMEOUT_S)
        return stk_fail(STK_INVALID, "%s must be seconds that ranks wait for each other in a step, not '%s'",
                        TIMEOUT_VARIABLE, text);
    *timeout_ms = (int)s * 1000;
    return STK_OK;
}

stk_status stk_replicas_prepare(stk_trainer *trainer, int64_t n_epochs)
{
    /* A thread cannot be lost, and one that waits for a slow disk is waited for. */
    if (trainer->comm && !trainer->n_replicas && !trainer->is_replica)
        STK_RETURN_IF_ERROR(find_timeout(&trainer->comm->timeout_ms));
    for (int r = 1; r < trainer->n_replicas; r++) {
        stk_replica *replica = &trainer->replica[r - 1];
        stk_status status = replica->trainer ? STK_OK : make_one(trainer, replica->comm, &replica->trainer);
        if (status == STK_OK) status = stk_trainer_prepare(replica->trainer, n_epochs);
        if (status != STK_OK) return stk_fail_prefix(status, "replica %d: ", r);
    }
    return STK_OK;
}

void stk_replicas_free(stk_trainer *trainer)
{
    for (int r = 1; r < trainer->n_replicas; r++) {
        stk_trainer_free(trainer->replica[r - 1].trainer);
        stk_comm_close(trainer->replica[r - 1].comm);
    }
    free(trainer->replica);
    trainer->replica = NULL;
    if (!trainer->n_replicas) return;
    stk_comm_close(trainer->comm);
    trainer->comm = NULL;
    trainer->n_replicas = 0;
}

/* --- collectives on the host --- */

static stk_status run_call(const stk_trainer *trainer, stk_collective kind, stk_dtype dtype, int64_t n, const void *src,
                           void *dst)
{
    stk_comm_call call = {.kind = kind, .dtype = dtype, .n = n, .src = src, .dst = dst};
    return stk_comm_run(trainer->comm, &call, trainer->comm->timeout_ms);
}

stk_status stk_replicas_take_first(const stk_trainer *trainer, void *data, size_t bytes)
{
    if (!trainer->comm) return STK_OK;
    return run_call(trainer, STK_COLLECTIVE_broadcast, STK_U8, (int64_t)bytes, data, data);
}

stk_status stk_replicas_add(const stk_trainer *trainer, double *sums, int n)
{
    if (!trainer->comm) return STK_OK;
    return run_call(trainer, STK_COLLECTIVE_all_reduce, STK_F64, n, sums, sums);
}

/* What one rank has skipped: counts, of keys and of bytes of texts, and the keys with the texts behind them, each with
 * its end. */
typedef struct skipped_lists {
    int64_t n_keys, n_bytes;
} skipped_lists;

static size_t bytes_of(skipped_lists lists)
{
    return (size_t)lists.n_keys * sizeof(int64_t) + (size_t)lists.n_bytes;
}

/* Returned: free(). NULL: there is no memory. */
static char *pack_skipped(const stk_trainer *trainer, skipped_lists lists)
{
    char *all = malloc(bytes_of(lists) + 1);
    size_t bytes = (size_t)lists.n_keys * sizeof(int64_t);
    if (all && bytes > 0) memcpy(all, trainer->skipped.key, bytes);
    char *text = all + bytes;
    for (size_t i = 0; all && i < trainer->skipped.n_texts; i++)
        text = stpcpy(text, trainer->skipped.text[i]) + 1;
    return all;
}

static void add_skipped(stk_trainer *trainer, char *all, skipped_lists lists)
{
    const int64_t *key = (const int64_t *)all;
    const char *text = all + (size_t)lists.n_keys * sizeof(int64_t), *end = text + lists.n_bytes;
    all[bytes_of(lists)] = 0;
    for (int64_t i = 0; i < lists.n_keys; i++)
        stk_skipped_add_key(&trainer->skipped, key[i]);
    for (; text < end; text += strlen(text) + 1)
        stk_skipped_add_text(&trainer->skipped, text);
}

static stk_status take_skipped(stk_trainer *trainer, int rank, skipped_lists lists, char *own)
{
    char *theirs = trainer->comm->rank == rank ? own : malloc(bytes_of(lists) + 1);
    if (!theirs) return stk_fail_memory(bytes_of(lists));
    stk_comm_call call = {.kind = STK_COLLECTIVE_broadcast,
                          .dtype = STK_U8,
                          .n = (int64_t)bytes_of(lists),
                          .src = theirs,
                          .dst = theirs,
                          .root = rank};
    stk_status status = stk_comm_run(trainer->comm, &call, trainer->comm->timeout_ms);
    if (status == STK_OK) add_skipped(trainer, theirs, lists);
    if (theirs != own) free(theirs);
    return status;
}

stk_status stk_replicas_join_skipped(stk_trainer *trainer)
{
    if (!trainer->comm) return STK_OK;
    skipped_lists lists = {.n_keys = trainer->skipped.n_keys};
    int n = trainer->comm->n_ranks;
    for (size_t i = 0; i < trainer->skipped.n_texts; i++)
        lists.n_bytes += (int64_t)strlen(trainer->skipped.text[i]) + 1;
    char *own = pack_skipped(trainer, lists);
    skipped_lists *all = calloc((size_t)n, sizeof(*all));
    stk_status status = own && all ? run_call(trainer, STK_COLLECTIVE_all_gather, STK_I64, 2, &lists, all)
                                   : stk_fail_memory(bytes_of(lists));
    for (int r = 0; r < n && status == STK_OK; r++)
        if (bytes_of(all[r]) > 0) status = take_skipped(trainer, r, all[r], own);
    free(own);
    free(all);
    return status;
}

/* What ranks do together must be the same on all of them: of each step its sums, and of the run its counts. */
static stk_status check_alike(const stk_trainer *trainer)
{
    int n = trainer->comm->n_ranks, rank = trainer->comm->rank;
    uint64_t own = stk_program_ranks_hash(trainer->train.program, (uint64_t)trainer->n_steps);
    uint64_t *all = calloc((size_t)n, sizeof(*all));
    if (!all) return stk_fail_memory((size_t)n * sizeof(*all));
    stk_status status = run_call(trainer, STK_COLLECTIVE_all_gather, STK_I64, 1, &own, all);
    for (int r = 0; r < n && status == STK_OK; r++)
        if (all[r] != own)
            status = stk_fail(STK_MISMATCH,
                              "replicas %d and %d do not train the same step: is it the same recipe, data "
                              "and version of Stoker everywhere?",
                              rank, r);
    free(all);
    return status;
}

stk_status stk_replicas_sync(stk_trainer *trainer)
{
    const stk_named_tensor *tensors;
    size_t n;
    if (!trainer->comm) return STK_OK;
    STK_RETURN_IF_ERROR(check_alike(trainer));
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &tensors, &n));
    for (size_t i = 0; i < n; i++) {
        void *data = tensors[i].view.data;
        if (tensors[i].source) continue;
        int64_t bytes = (int64_t)stk_desc_bytes(tensors[i].view.desc);
        STK_RETURN_IF_ERROR(stk_replicas_take_first(trainer, data, (size_t)bytes));
    }
    stk_train_state *state = &trainer->state;
    STK_RETURN_IF_ERROR(stk_replicas_take_first(trainer, state, sizeof(*state)));
    STK_RETURN_IF_ERROR(stk_divided_deal(trainer));
    return stk_trainer_put_tensors(trainer);
}

/* --- threads --- */

typedef struct replica_job {
    stk_trainer *trainer;
    const stk_dataset *dataset; /* to evaluate on; NULL: to train */
    bool syncs;                 /* variables may have been changed on the first rank */
    int64_t n_epochs;
    stk_metrics metrics;
    stk_thread thread;
    stk_status status;
    char error[1024];
} replica_job;

static void run_job(void *arg)
{
    replica_job *job = arg;
    job->status = job->syncs ? stk_replicas_sync(job->trainer) : STK_OK;
    if (job->status == STK_OK)
        job->status = job->dataset ? stk_evaluate_rank(job->trainer, job->dataset, &job->metrics)
                                   : stk_loop_run(job->trainer, job->n_epochs);
    if (job->status == STK_OK) return;
    snprintf(job->error, sizeof(job->error), "%s", stk_error_text());
    if (job->status != STK_INTERRUPTED) stk_comm_abort(job->trainer->comm, job->error);
}

/* The one that failed by itself says more than those that waited for it. NULL: none did. */
static const replica_job *find_failure(const replica_job *job, int n)
{
    const replica_job *found = NULL;
    for (int r = n - 1; r >= 0; r--)
        if (job[r].status != STK_OK && (!found || job[r].status != STK_LOST || found->status == STK_LOST))
            found = &job[r];
    return found;
}

/* What went wrong in an earlier call is over: nobody is in one, and all begin with the first one's state. */
static void renew(stk_trainer *trainer)
{
    stk_comm *comm[STK_MOST_REPLICAS] = {trainer->comm};
    for (int r = 1; r < trainer->n_replicas; r++)
        comm[r] = trainer->replica[r - 1].comm;
    if (trainer->n_replicas) stk_comm_renew_local(trainer->n_replicas, comm);
}

/* On all replicas of this process; its own rank first. */
static stk_status run_jobs(stk_trainer *trainer, replica_job own, stk_metrics *out)
{
    int n = trainer->n_replicas ? trainer->n_replicas : 1;
    replica_job *job = calloc((size_t)n, sizeof(*job));
    if (!job) return stk_fail_memory((size_t)n * sizeof(*job));
    stk_status status = STK_OK;
    renew(trainer);
    for (int r = 0; r < n; r++) {
        job[r] = own;
        job[r].trainer = r ? trainer->replica[r - 1].trainer : trainer;
        if (r == 0 || status != STK_OK) continue;
        status = stk_thread_start(&job[r].thread, "stk-replica", false, run_job, &job[r]);
        if (status != STK_OK) stk_comm_abort(trainer->comm, stk_error_text());
    }
    if (status == STK_OK) run_job(&job[0]);
    for (int r = 1; r < n; r++)
        stk_thread_join(&job[r].thread);
    const replica_job *failed = status == STK_OK ? find_failure(job, n) : NULL;
    if (failed) status = stk_fail(failed->status, "%s", failed->error);
    if (out) *out = job[0].metrics;
    free(job);
    return status;
}

stk_status stk_replicas_run(stk_trainer *trainer, int64_t n_epochs)
{
    if (!trainer->comm) return stk_loop_run(trainer, n_epochs);
    for (int r = 1; r < trainer->n_replicas; r++)
        trainer->replica[r - 1].trainer->stop_agreed = false;
    trainer->stop_agreed = false;
    return run_jobs(trainer, (replica_job){.n_epochs = n_epochs}, NULL);
}

void stk_trainer_set_whole(stk_trainer *trainer, const stk_dataset *whole)
{
    trainer->whole = whole;
    for (int r = 1; r < trainer->n_replicas; r++)
        trainer->replica[r - 1].trainer->whole = whole;
}

stk_status stk_trainer_evaluate(stk_trainer *trainer, const stk_dataset *dataset, stk_metrics *out)
{
    if (!trainer) return stk_fail(STK_INVALID, "there is no trainer");
    STK_RETURN_IF_ERROR(stk_dataset_status(dataset));
    STK_RETURN_IF_ERROR(stk_trainer_prepare(trainer, trainer->n_epochs > 0 ? trainer->n_epochs : 1));
    if (!trainer->comm) return stk_evaluate_rank(trainer, dataset, out);
    return run_jobs(trainer, (replica_job){.dataset = dataset, .syncs = true}, out);
}

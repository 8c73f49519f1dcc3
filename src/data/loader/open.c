/* Opening a loader: the ring, its memory, the workers. And closing it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "data/loader/budget.h"
#include "data/loader/inside.h"
#include "data/loader/masked.h"
#include "data/loader/mixup_batch.h"

enum { MAX_THREADS = 1024, MIN_SLOTS = 3, LEAST_ERRORS = 100, MAX_KEPT = 1 << 16 };

stk_loader_config stk_loader_config_default(void)
{
    return (stk_loader_config){0};
}

static stk_status check_config(const stk_dataset *dataset, const stk_loader_config *config)
{
    STK_RETURN_IF_ERROR(stk_dataset_status(dataset));
    if (dataset->n_rows == 0) return stk_fail(STK_INVALID, "the data set has no batches: call 'batch' last of all");
    if (config->n_threads < 0 || config->n_threads > MAX_THREADS)
        return stk_fail(STK_INVALID, "'n_threads' is %d, not in 0 to %d", config->n_threads, MAX_THREADS);
    if (config->n_slots < 0 || config->n_slots == 1)
        return stk_fail(STK_INVALID, "'n_slots' is %d: at least 2 are needed, 0 chooses", config->n_slots);
    if (config->n_kept < 0 || config->n_kept > MAX_KEPT)
        return stk_fail(STK_INVALID, "'n_kept' is %d, not in 0 to %d", config->n_kept, MAX_KEPT);
    if (config->n_epochs < 0) return stk_fail(STK_INVALID, "'n_epochs' is %lld", (long long)config->n_epochs);
    return stk_sequence_check(dataset, config);
}

/* Few slots stay in the caches, many bridge slow records: 64 MiB worth of them, 4 to 16, as far as memory allows. */
static int wanted_slots(const stk_loader_config *config, bool has_threads, size_t slot_bytes)
{
    size_t n = ((size_t)64 << 20) / slot_bytes;
    if (config->n_slots) return config->n_slots;
    return !has_threads ? STK_MOST_HELD + 1 : n < 4 ? 4 : n > 16 ? 16 : (int)n;
}

static int64_t count_rows(const void *share, int64_t i_batch)
{
    return stk_share_count(share, i_batch);
}

/* What all rows of a batch have of a field of a slot. */
static size_t field_bytes(const stk_dataset *dataset, int f, size_t row_bytes)
{
    const stk_pad_plan *pad = f < dataset->source->n_fields && dataset->pad[f].on ? &dataset->pad[f] : NULL;
    size_t most = 0;
    if (!pad || dataset->buckets.n == 0) return row_bytes * (size_t)dataset->n_rows;
    for (int b = 0; b < dataset->buckets.n; b++) {
        const stk_bucket *bucket = &dataset->buckets.bucket[b];
        int64_t n_rows = bucket->size < bucket->n_samples ? bucket->size : bucket->n_samples;
        size_t bytes = (size_t)n_rows * (size_t)bucket->longest[f] * pad->element_bytes;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Whether all work is on arrays in memory, so that nothing is ever waited for and no decoder's memory is needed. */
static bool is_in_memory(const stk_dataset *dataset)
{
    const stk_source *source = dataset->source;
    for (int f = 0; f < source->n_fields; f++)
        if (source->field[f].type.kind != STK_FIELD_ARRAY) return false;
    return source->n_bytes > 0 || source->is_random;
}

/* Whether one batch can stand for all: random samples with nothing done to them, and no short batch at the end. */
static bool repeats(const stk_dataset *dataset)
{
    const stk_source *source = dataset->source;
    if (!source->is_random || dataset->n_padded || dataset->n_joints || dataset->cache || dataset->masked ||
        stk_mixup_wanted(dataset))
        return false;
    for (int f = 0; f < source->n_fields; f++)
        if (dataset->chain[f].n_stages) return false;
    return dataset->drop_remainder || dataset->order.count % dataset->n_rows == 0;
}

/* *budget: as wanted, before anything is made smaller. */
static stk_status plan_ring(const stk_loader *loader, const stk_loader_config *config, stk_work *work,
                            stk_ring_config *ring, stk_budget *out)
{
    const stk_dataset *dataset = work->dataset;
    int64_t n_rows = dataset->n_rows;
    *ring = (stk_ring_config){.n_fields = dataset->source->n_fields + dataset->n_padded,
                              .n_rows = n_rows,
                              .exact = dataset->buckets.n > 0,
                              .one_memory = work->repeats,
                              .n_total = stk_share_total(&work->share, config->n_epochs),
                              .count = count_rows,
                              .share = &work->share,
                              .complete = stk_mixup_wanted(dataset) ? stk_mixup_complete
                                          : dataset->masked         ? stk_masked_complete
                                                                    : NULL,
                              .complete_user = work,
                              .alloc = config->alloc,
                              .free = config->free,
                              .alloc_user = config->alloc_user,
                              .memory = work->memory};
    for (int f = 0; f < dataset->source->n_fields; f++) {
        ring->row_bytes[f] = stk_desc_bytes(work->want[f].desc);
        if (dataset->pad[f].on) ring->row_bytes[dataset->pad[f].i_length] = sizeof(int32_t);
        if (ring->row_bytes[f] > ((size_t)1 << 47) / (size_t)n_rows)
            return stk_fail(STK_INVALID, "a batch of %lld samples of field '%s' is too large", (long long)n_rows,
                            dataset->source->field[f].name);
    }
    for (int f = 0; f < ring->n_fields; f++)
        ring->field_bytes[f] = field_bytes(dataset, f, ring->row_bytes[f]);
    work->n_slot_fields = ring->n_fields;
    memcpy(work->row_bytes, ring->row_bytes, sizeof(work->row_bytes));
    size_t slot_bytes = stk_ring_slot_bytes(ring);
    *out = (stk_budget){.n_slots = wanted_slots(config, !loader->parallel, slot_bytes),
                        .n_kept = config->n_kept,
                        .n_workers = work->n_workers,
                        .least_slots = MIN_SLOTS,
                        .slot_bytes = slot_bytes};
    if (ring->one_memory) out->slot_bytes = slot_bytes / (size_t)out->n_slots + 1;
    return STK_OK;
}

/* What the workers may take of the account is not for batches that are kept. */
static stk_status make_room_to_keep(stk_loader *loader, int n_kept, const stk_budget *budget)
{
    if (n_kept == 0) return STK_OK;
    size_t reserve = (size_t)budget->n_workers * budget->worker_bytes;
    return stk_kept_pool_new(&loader->ring_config, n_kept, reserve, &loader->kept);
}

static stk_status fit_ring(stk_work *work, stk_budget *budget, stk_ring_config *ring)
{
    STK_RETURN_IF_ERROR(stk_budget_fit(work, budget));
    ring->n_slots = budget->n_slots;
    work->n_workers = budget->n_workers;
    return STK_OK;
}

/* The caller's account, or one of its own; what the source holds is in it. */
static stk_status open_memory(stk_loader *loader, const stk_loader_config *config)
{
    size_t held = stk_dataset_held_bytes(loader->work.dataset);
    if (!config->memory) STK_RETURN_IF_ERROR(stk_memory_new(config->memory_limit_bytes, &loader->own_memory));
    loader->work.memory = config->memory ? config->memory : loader->own_memory;
    if (config->memory) stk_memory_keep(config->memory);
    stk_status status = stk_memory_charge_held(loader->work.memory, held);
    if (status != STK_OK) return stk_fail_prefix(status, "the source's index or data: ");
    loader->held_bytes = held;
    return STK_OK;
}

/* Room for the plans of n epochs at once, instead of what there was. */
static stk_status make_plans(stk_loader *loader, int64_t n)
{
    size_t bytes;
    stk_memory_release_held(loader->work.memory, loader->plan_bytes);
    loader->plan_bytes = 0;
    stk_epoch_plans_free(loader->plans);
    loader->plans = NULL;
    STK_RETURN_IF_ERROR(stk_epoch_plans_new(loader->work.dataset, n, &loader->plans, &bytes));
    loader->work.share.plans = loader->plans;
    stk_status status = stk_memory_charge_held(loader->work.memory, bytes);
    if (status != STK_OK) return stk_fail_prefix(status, "the plans of epochs: ");
    loader->plan_bytes = bytes;
    return STK_OK;
}

static stk_status start_workers(stk_loader *loader, const stk_loader_config *config)
{
    int n = loader->work.n_workers;
    loader->thread = calloc((size_t)n, sizeof(*loader->thread));
    loader->worker = calloc((size_t)n, sizeof(*loader->worker));
    if (!loader->thread || !loader->worker) return stk_fail_memory((size_t)n * sizeof(*loader->worker));
    for (int i = 0; i < n; i++)
        STK_RETURN_IF_ERROR(stk_worker_init(&loader->worker[i], &loader->work));
    for (; loader->n_threads < n && !loader->parallel; loader->n_threads++) {
        int i = loader->n_threads;
        loader->worker[i].i_worker = i;
        char name[24];
        snprintf(name, sizeof(name), "stk-data-%d", i);
        stk_ring_enter(loader->work.ring);
        stk_status status =
            stk_thread_start(&loader->thread[i], name, config->low_priority, stk_worker_run, &loader->worker[i]);
        if (status != STK_OK) {
            stk_ring_leave(loader->work.ring);
            return status;
        }
    }
    return STK_OK;
}

static int64_t most_errors(const stk_dataset *dataset)
{
    int64_t n = dataset->source->is_open ? 0 : dataset->order.count / 100;
    if (dataset->most_errors) return dataset->most_errors;
    return n < LEAST_ERRORS ? LEAST_ERRORS : n;
}

/* It begins with all that there is, unless told otherwise. */
static void start_tuner(stk_loader *loader, const stk_loader_config *config)
{
    int n_threads = loader->work.n_workers, n_slots = loader->ring_config.n_slots;
    int first_threads = config->n_first_threads, first_slots = config->n_first_slots;
    loader->tunes = !config->no_tuning && !loader->parallel;
    loader->tuner = (stk_tuner){.most_threads = n_threads,
                                .most_slots = n_slots,
                                .n_threads = first_threads > 0 && first_threads < n_threads ? first_threads : n_threads,
                                .n_slots = first_slots > 1 && first_slots < n_slots ? first_slots : n_slots,
                                .can_rest = config->low_priority};
    stk_tuner_start(&loader->tuner, stk_clock_ns());
    if (loader->tunes) stk_ring_set_use(loader->work.ring, loader->tuner.n_slots, loader->tuner.n_threads);
}

/* In the loader's account, next to what other loaders of it have. */
static stk_status probe(stk_work *work)
{
    stk_jpeg_reader *reader = stk_jpeg_reader_of_thread();
    stk_memory *before = stk_memory_use(work->memory);
    if (reader) stk_jpeg_reader_trim(reader);
    stk_status status = stk_dataset_probe(work->dataset, work->want, work->probe_name);
    if (status == STK_NO_MEMORY) {
        stk_memory_begin_turn(work->memory);
        status = stk_dataset_probe(work->dataset, work->want, work->probe_name);
        stk_memory_end_turn(work->memory);
    }
    if (reader) stk_jpeg_reader_trim(reader);
    (void)stk_memory_use(before);
    return status;
}

/* Everything up to how large the ring is to be. */
static stk_status plan_loader(stk_loader *loader, const stk_dataset *dataset, const stk_loader_config *config,
                              stk_budget *budget)
{
    stk_status status = STK_OK;
    stk_work *work = &loader->work;
    stk_dataset_hold(dataset);
    work->dataset = dataset;
    work->skips = &loader->skips;
    work->seed = config->seed;
    work->no_stage_times = config->no_stage_times;
    for (int f = 0; f < dataset->source->n_fields; f++)
        work->chain[f] = &dataset->chain[f];
    work->n_workers = config->n_threads ? config->n_threads : stk_n_cores();
    if (config->parallel && is_in_memory(dataset)) {
        loader->parallel = config->parallel;
        loader->parallel_user = config->parallel_user;
    }
    STK_TRY(stk_skip_list_init(&loader->skips, most_errors(dataset)));
    STK_TRY(open_memory(loader, config));
    if (dataset->buckets.n) STK_TRY(make_plans(loader, 1));
    STK_TRY(stk_share_make(dataset, config, loader->plans, &work->share));
    STK_TRY(probe(work));
    if (stk_mixup_wanted(dataset) && dataset->on_error == STK_ON_ERROR_SKIP)
        STK_TRY(stk_fail(STK_INVALID, "mixed samples cannot be left out: replace corrupt records"));
    if (stk_mixup_wanted(dataset)) STK_TRY(stk_mixup_check(dataset, work->want));
    if (dataset->masked && dataset->on_error == STK_ON_ERROR_SKIP)
        STK_TRY(stk_fail(STK_INVALID, "masked samples cannot be left out: replace corrupt records"));
    if (dataset->masked && stk_mixup_wanted(dataset))
        STK_TRY(stk_fail(STK_INVALID, "a data set is either mixed or masked, not both"));
    if (dataset->masked) STK_TRY(stk_masked_check(dataset, work->want));
    work->ahead = &loader->ahead;
    work->repeats = config->n_kept == 0 && repeats(dataset);
    STK_TRY(plan_ring(loader, config, work, &loader->ring_config, budget));
done:
    return status;
}

stk_status stk_loader_need(const stk_dataset *dataset, const stk_loader_config *config, stk_loader_memory *out)
{
    stk_budget budget;
    size_t worker_bytes;
    *out = (stk_loader_memory){0};
    STK_RETURN_IF_ERROR(check_config(dataset, config));
    stk_loader *loader = calloc(1, sizeof(*loader));
    if (!loader) return stk_fail_memory(sizeof(*loader));
    stk_memory *before = stk_memory_in_use();
    stk_status status = STK_OK;
    STK_TRY(plan_loader(loader, dataset, config, &budget));
    (void)stk_memory_use(loader->work.memory);
    STK_TRY(stk_budget_measure(&loader->work, &worker_bytes));
    *out = (stk_loader_memory){.held_bytes = loader->held_bytes + loader->plan_bytes,
                               .least_bytes = stk_budget_slots(&budget, STK_LEAST_SLOTS) + worker_bytes,
                               .wanted_bytes =
                                   stk_budget_slots(&budget, budget.n_slots) + (size_t)budget.n_workers * worker_bytes};
done:
    (void)stk_memory_use(before);
    stk_loader_close(loader);
    return status;
}

stk_status stk_loader_open(const stk_dataset *dataset, const stk_loader_config *config, stk_loader **out)
{
    if (!dataset) return stk_fail(STK_INVALID, "there is no data set");
    STK_NEED(out);
    stk_loader_config defaults = stk_loader_config_default();
    stk_budget budget;
    if (!config) config = &defaults;
    *out = NULL;
    STK_RETURN_IF_ERROR(check_config(dataset, config));
    stk_status status = STK_OK;
    stk_loader *loader = calloc(1, sizeof(*loader));
    if (!loader) return stk_fail_memory(sizeof(*loader));
    stk_work *work = &loader->work;
    STK_TRY(plan_loader(loader, dataset, config, &budget));
    STK_TRY(fit_ring(work, &budget, &loader->ring_config));
    work->n_total = loader->ring_config.n_total;
    /* Of all epochs that the slots may have batches of at once, and the one that is planned ahead. */
    if (dataset->buckets.n) STK_TRY(make_plans(loader, loader->ring_config.n_slots / work->share.whole.n_batches + 3));
    STK_TRY(stk_ring_new(&loader->ring_config, &work->ring));
    STK_TRY(make_room_to_keep(loader, config->n_kept, &budget));
    STK_TRY(stk_sequence_open(work, &loader->sequence));
    if (loader->sequence.source) work->sequence = &loader->sequence;
    STK_TRY(stk_loader_open_cache(dataset, work, &loader->cache_bytes));
    start_tuner(loader, config);
    STK_TRY(start_workers(loader, config));
    *out = loader;
    loader = NULL;
done:
    stk_loader_close(loader);
    return status;
}

void stk_loader_close(stk_loader *loader)
{
    if (!loader) return;
    atomic_store(&loader->work.is_closing, true);
    if (loader->work.ring) stk_ring_stop(loader->work.ring);
    for (int i = 0; i < loader->n_threads; i++)
        stk_thread_join(&loader->thread[i]);
    for (int i = 0; loader->worker && i < loader->work.n_workers; i++)
        stk_worker_free(&loader->worker[i]);
    stk_sequence_close(&loader->sequence);
    stk_ring_free(loader->work.ring);
    stk_kept_pool_close(loader->kept);
    stk_skip_list_free(&loader->skips);
    stk_epoch_plans_free(loader->plans);
    stk_memory_release_held(loader->work.memory, loader->plan_bytes);
    stk_memory_release(loader->work.memory, loader->cache_bytes);
    stk_memory_release_held(loader->work.memory, loader->held_bytes);
    stk_memory_free(loader->work.memory);
    stk_dataset_free((stk_dataset *)(uintptr_t)loader->work.dataset); /* as it was held */
    free(loader->thread);
    free(loader->worker);
    free(loader);
}

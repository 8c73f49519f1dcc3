/* Opening a loader, and the consumer's side of it. See stoker/loader.h. */
#include "stoker/loader.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/thread.h"
#include "data/budget.h"
#include "data/mixup_batch.h"
#include "data/tune.h"
#include "stoker/ragged.h"

enum { MAX_THREADS = 1024, MAX_HELD = 2, MIN_SLOTS = 3, LEAST_ERRORS = 100 };

struct stk_batch {
    stk_loader *loader;
    stk_slot *slot;
    int64_t i_batch; /* of the ring */
    int64_t n_rows;  /* that are samples */
    bool held;
};

typedef void (*part_body)(const void *task, int i_part, int n_parts);

struct stk_loader {
    stk_work work;
    stk_skip_list skips;
    stk_ahead ahead;
    stk_ring_config ring_config;
    stk_memory *own_memory; /* NULL: the caller's is used */
    stk_epoch_plans *plans; /* NULL: batches are not planned */
    size_t held_bytes;      /* by the source */
    size_t plan_bytes;
    stk_tuner tuner;
    bool tunes;
    size_t cache_bytes; /* of the cache, charged by this loader */
    int n_threads;      /* started */
    stk_thread *thread;
    stk_worker *worker; /* work.n_workers */
    /* The consumer's threads; NULL: the workers have their own. */
    void (*parallel)(void *user, int n_parts, part_body body, const void *task);
    void *parallel_user;
    stk_batch batch[MAX_HELD];
    int64_t i_next; /* batch of the ring that comes next */
    int64_t n_samples, wait_ns;
    double first_batch_s;
    bool ended;        /* stays: the last call failed */
    stk_status status; /* of the last stk_loader_next */
    char error[1024];
};

stk_loader_config stk_loader_config_default(void)
{
    return (stk_loader_config){0};
}

/* --- opening --- */

static stk_status check_config(const stk_dataset *dataset, const stk_loader_config *config)
{
    STK_RETURN_IF_ERROR(stk_dataset_status(dataset));
    if (dataset->n_rows == 0) return stk_fail(STK_INVALID, "the data set has no batches: call 'batch' last of all");
    if (config->n_threads < 0 || config->n_threads > MAX_THREADS)
        return stk_fail(STK_INVALID, "'n_threads' is %d, not in 0 to %d", config->n_threads, MAX_THREADS);
    if (config->n_slots < 0 || config->n_slots == 1)
        return stk_fail(STK_INVALID, "'n_slots' is %d: at least 2 are needed, 0 chooses", config->n_slots);
    if (config->n_epochs < 0) return stk_fail(STK_INVALID, "'n_epochs' is %lld", (long long)config->n_epochs);
    return STK_OK;
}

/* Few slots stay in the caches, many bridge slow records: 64 MiB worth of them, 4 to 16, as far as memory allows. */
static int wanted_slots(const stk_loader_config *config, bool has_threads, size_t slot_bytes)
{
    size_t n = ((size_t)64 << 20) / slot_bytes;
    if (config->n_slots) return config->n_slots;
    return !has_threads ? MAX_HELD + 1 : n < 4 ? 4 : n > 16 ? 16 : (int)n;
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
    return source->n_bytes > 0;
}

static stk_status plan_ring(const stk_loader *loader, const stk_loader_config *config, stk_work *work,
                            stk_ring_config *ring)
{
    const stk_dataset *dataset = work->dataset;
    int64_t n_rows = dataset->n_rows;
    *ring = (stk_ring_config){.n_fields = dataset->source->n_fields + dataset->n_padded,
                              .n_rows = n_rows,
                              .exact = dataset->buckets.n > 0,
                              .n_total = stk_share_total(&work->share, config->n_epochs),
                              .count = count_rows,
                              .share = &work->share,
                              .complete = stk_mixup_wanted(dataset) ? stk_mixup_complete : NULL,
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
    stk_budget budget = {.n_slots = wanted_slots(config, !loader->parallel, slot_bytes),
                         .n_workers = work->n_workers,
                         .least_slots = MIN_SLOTS,
                         .slot_bytes = slot_bytes};
    STK_RETURN_IF_ERROR(stk_budget_fit(work, &budget));
    ring->n_slots = budget.n_slots;
    work->n_workers = budget.n_workers;
    return STK_OK;
}

/* The caller's account, or one of its own; what the source holds is in it. */
static stk_status open_memory(stk_loader *loader, const stk_loader_config *config)
{
    size_t held = stk_dataset_held_bytes(loader->work.dataset);
    if (!config->memory) STK_RETURN_IF_ERROR(stk_memory_new(config->memory_limit_bytes, &loader->own_memory));
    loader->work.memory = config->memory ? config->memory : loader->own_memory;
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
    int64_t n = dataset->order.count / 100;
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

stk_status stk_loader_open(const stk_dataset *dataset, const stk_loader_config *config, stk_loader **out)
{
    stk_loader_config defaults = stk_loader_config_default();
    if (!config) config = &defaults;
    *out = NULL;
    STK_RETURN_IF_ERROR(check_config(dataset, config));
    stk_status status = STK_OK;
    stk_loader *loader = calloc(1, sizeof(*loader));
    if (!loader) return stk_fail_memory(sizeof(*loader));
    stk_work *work = &loader->work;
    work->dataset = dataset;
    work->skips = &loader->skips;
    work->seed = config->seed;
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
    STK_TRY(stk_dataset_probe(dataset, work->want, work->probe_name));
    if (stk_mixup_wanted(dataset) && dataset->on_error == STK_ON_ERROR_SKIP)
        STK_TRY(stk_fail(STK_INVALID, "mixed samples cannot be left out: replace corrupt records"));
    if (stk_mixup_wanted(dataset)) STK_TRY(stk_mixup_check(dataset, work->want));
    work->ahead = &loader->ahead;
    STK_TRY(plan_ring(loader, config, work, &loader->ring_config));
    work->n_total = loader->ring_config.n_total;
    /* Of all epochs that the slots may have batches of at once, and the one that is planned ahead. */
    if (dataset->buckets.n) STK_TRY(make_plans(loader, loader->ring_config.n_slots / work->share.whole.n_batches + 3));
    STK_TRY(stk_ring_new(&loader->ring_config, &work->ring));
    STK_TRY(stk_row_cache_begin(dataset, work, &loader->cache_bytes));
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
    if (loader->work.ring) stk_ring_stop(loader->work.ring);
    for (int i = 0; i < loader->n_threads; i++)
        stk_thread_join(&loader->thread[i]);
    for (int i = 0; loader->worker && i < loader->work.n_workers; i++)
        stk_worker_free(&loader->worker[i]);
    stk_ring_free(loader->work.ring);
    stk_skip_list_free(&loader->skips);
    stk_epoch_plans_free(loader->plans);
    stk_memory_release_held(loader->work.memory, loader->plan_bytes);
    stk_memory_release(loader->work.memory, loader->cache_bytes);
    stk_memory_release_held(loader->work.memory, loader->held_bytes);
    stk_memory_free(loader->own_memory);
    free(loader->thread);
    free(loader->worker);
    free(loader);
}

/* --- the consumer --- */

static const stk_batch *fail_next(stk_loader *loader, stk_status status)
{
    loader->status = status;
    snprintf(loader->error, sizeof(loader->error), "%s", stk_error_text());
    return NULL;
}

/* Moves the rows together that are not to be left out; zeros end the batch. */
static void leave_out(stk_loader *loader, stk_batch *batch)
{
    const stk_skip_list *skips = &loader->skips;
    int64_t n_kept = batch->n_rows - skips->n_rows;
    for (int f = 0; f < loader->ring_config.n_fields; f++) {
        unsigned char *row = batch->slot->field[f];
        size_t n = batch->slot->row_bytes[f];
        int64_t to = skips->row[0];
        for (int64_t i = 0; i < skips->n_rows; i++) {
            int64_t from = skips->row[i] + 1, end = i + 1 < skips->n_rows ? skips->row[i + 1] : batch->n_rows;
            memmove(row + (size_t)to * n, row + (size_t)from * n, (size_t)(end - from) * n);
            to += end - from;
        }
        memset(row + (size_t)n_kept * n, 0, (size_t)(batch->n_rows - n_kept) * n);
    }
    batch->n_rows = n_kept;
}

static void make_part(const void *task, int i_part, int n_parts)
{
    const stk_loader *loader = task;
    (void)n_parts;
    stk_worker_assist(&loader->worker[i_part], loader->i_next + 1);
}

/* Makes the next batch on the consumer's threads. */
static void make_next(stk_loader *loader)
{
    if (stk_ring_has(loader->work.ring, loader->i_next)) return;
    int64_t start_ns = stk_clock_ns();
    loader->parallel(loader->parallel_user, loader->work.n_workers, make_part, loader);
    loader->wait_ns += stk_clock_ns() - start_ns;
}

static stk_status take_batch(stk_loader *loader, stk_batch *batch)
{
    int64_t i_batch = loader->i_next;
    stk_ring *ring = loader->work.ring;
    if (loader->parallel) make_next(loader);
    stk_tuner_note_ready(&loader->tuner, stk_ring_count_ready(ring, i_batch));
    stk_status status = stk_ring_wait(ring, i_batch, &loader->wait_ns);
    if (status == STK_BUSY) return status;
    if (status == STK_OK) status = stk_skip_list_collect(&loader->skips, i_batch);
    loader->ended = status != STK_OK;
    STK_RETURN_IF_ERROR(status);
    *batch = (stk_batch){.loader = loader,
                         .slot = stk_ring_slot(ring, i_batch),
                         .i_batch = i_batch,
                         .n_rows = stk_ring_count(ring, i_batch),
                         .held = true};
    if (loader->skips.n_rows > 0 && loader->work.dataset->on_error == STK_ON_ERROR_SKIP) leave_out(loader, batch);
    loader->i_next++;
    loader->n_samples += batch->n_rows;
    if (loader->tunes && stk_tuner_step(&loader->tuner, stk_clock_ns(), loader->wait_ns, loader->n_samples))
        stk_ring_set_use(ring, loader->tuner.n_slots, loader->tuner.n_threads);
    return STK_OK;
}

const stk_batch *stk_loader_next(stk_loader *loader)
{
    if (loader->ended) return NULL;
    loader->status = STK_OK;
    stk_batch *batch = NULL;
    for (int i = 0; i < MAX_HELD; i++)
        if (!loader->batch[i].held) batch = &loader->batch[i];
    if (!batch)
        return fail_next(loader, stk_fail(STK_BUSY, "%d batches are held: release one before the next", MAX_HELD));
    while (loader->i_next < loader->ring_config.n_total) {
        stk_status status = take_batch(loader, batch);
        if (status != STK_OK) return fail_next(loader, status);
        if (loader->first_batch_s == 0) loader->first_batch_s = stk_process_age_s();
        if (batch->n_rows > 0) return batch;
        stk_batch_release(batch); /* nothing is left of it */
    }
    return NULL;
}

void stk_batch_release(const stk_batch *batch)
{
    if (!batch || !batch->held) return;
    stk_loader *loader = batch->loader;
    /* Batches are the loader's own; const is for the consumer. */
    loader->batch[batch - loader->batch].held = false;
    stk_ring_release(loader->work.ring, batch->i_batch);
}

stk_status stk_loader_status(const stk_loader *loader)
{
    return loader->status == STK_OK ? STK_OK : stk_fail(loader->status, "%s", loader->error);
}

static int64_t rows_of(const stk_batch *batch)
{
    const stk_ring_config *ring = &batch->loader->ring_config;
    return ring->exact ? stk_batch_count(batch) : ring->n_rows;
}

/* The field's place in a slot; *of is the source's field, of which it may be the lengths. -1: there is none. */
static int find_slot_field(const stk_dataset *dataset, const char *field, int *of)
{
    const stk_source *source = dataset->source;
    for (*of = 0; field && *of < source->n_fields; ++*of) {
        const char *name = source->field[*of].name;
        size_t n = strlen(name);
        if (strncmp(name, field, n) != 0) continue;
        if (field[n] == 0) return *of;
        if (dataset->pad[*of].on && !strcmp(field + n, ".length")) return dataset->pad[*of].i_length;
    }
    return -1;
}

const void *stk_batch_data(const stk_batch *batch, const char *field)
{
    int of, i = find_slot_field(batch->loader->work.dataset, field, &of);
    return i < 0 ? NULL : batch->slot->field[i];
}

stk_status stk_batch_shape(const stk_batch *batch, const char *field, stk_shape *out)
{
    const stk_work *work = &batch->loader->work;
    int of, i = find_slot_field(work->dataset, field, &of);
    if (i < 0) return stk_fail(STK_NOT_FOUND, "the batch has no field '%s'", field ? field : "");
    *out = (stk_shape){.rank = 1, .dim = {rows_of(batch)}};
    if (i != of) return STK_OK;
    const stk_shape *row = &work->want[of].desc.shape;
    const stk_pad_plan *pad = &work->dataset->pad[of];
    for (int k = 0; k < row->rank; k++)
        out->dim[out->rank++] = row->dim[k];
    if (pad->on && pad->element_bytes) out->dim[1] = (int64_t)(batch->slot->row_bytes[of] / pad->element_bytes);
    return STK_OK;
}

int64_t stk_batch_count(const stk_batch *batch)
{
    return batch->n_rows;
}

int64_t stk_batch_epoch(const stk_batch *batch)
{
    int64_t i_epoch, i_in_epoch;
    stk_share_locate(&batch->loader->work.share, batch->i_batch, &i_epoch, &i_in_epoch);
    return i_epoch;
}

int64_t stk_batch_index(const stk_batch *batch)
{
    int64_t i_epoch, i_in_epoch;
    stk_share_locate(&batch->loader->work.share, batch->i_batch, &i_epoch, &i_in_epoch);
    return i_in_epoch;
}

int64_t stk_batch_done(const stk_batch *batch)
{
    return stk_share_done(&batch->loader->work.share, batch->i_batch);
}

uint64_t stk_batch_hash(const stk_batch *batch)
{
    const stk_ring_config *ring = &batch->loader->ring_config;
    size_t n_rows = (size_t)rows_of(batch);
    uint64_t hash = (uint64_t)stk_batch_count(batch);
    for (int f = 0; f < ring->n_fields; f++)
        hash = stk_hash64(batch->slot->field[f], batch->slot->row_bytes[f] * n_rows, hash);
    return hash;
}

void stk_loader_get_stats(const stk_loader *loader, stk_loader_stats *out)
{
    const stk_ring_config *ring = &loader->ring_config;
    *out = (stk_loader_stats){.n_batches = loader->i_next,
                              .n_samples = loader->n_samples,
                              .wait_ns = loader->wait_ns,
                              .n_skipped = loader->skips.n_skipped,
                              .slot_bytes = (size_t)ring->n_slots * stk_ring_slot_bytes(ring),
                              .n_threads = loader->n_threads,
                              .n_slots = ring->n_slots,
                              .first_batch_s = loader->first_batch_s};
    stk_memory_get_stats(loader->work.memory, &out->memory);
    out->n_active_threads = loader->tuner.n_threads;
    out->n_used_slots = loader->tuner.n_slots;
    out->ready_mean = loader->tuner.n_ready ? loader->tuner.ready_sum / (double)loader->tuner.n_ready : 0;
    out->n_history = loader->tuner.n_history;
    for (int i = 0; i < loader->tuner.n_history; i++)
        out->ready[i] = loader->tuner.ready[i];
    for (int i = 0; i < loader->work.n_workers; i++)
        out->work_ns += stk_counter_get(&loader->worker[i].work_ns);
}

/* Sums of one stage over the workers. */
static void add_stage(const stk_loader *loader, const char *field, int64_t ns, int64_t n_timed, int n_stages,
                      const stk_chain *chain, int i_stage, stk_stage_stats *out)
{
    size_t used = 0;
    *out = (stk_stage_stats){.field = field, .ns_per_sample = n_timed ? (double)ns / (double)n_timed : 0};
    if (!chain) {
        snprintf(out->name, sizeof(out->name), "%s (%s)", loader->work.cache ? "read or cache" : "read",
                 loader->work.dataset->source->class->name);
        return;
    }
    for (int i = i_stage; i < i_stage + n_stages && used < sizeof(out->name); i++)
        used += (size_t)snprintf(out->name + used, sizeof(out->name) - used, "%s%s", i > i_stage ? " + " : "",
                                 chain->stage[i]->class->name);
}

int stk_loader_get_stages(const stk_loader *loader, stk_stage_stats *out, int n_most)
{
    const stk_dataset *dataset = loader->work.dataset;
    int64_t ns = 0, n_timed = 0;
    int n = 0;
    for (int k = 0; k < loader->work.n_workers; k++) {
        ns += stk_counter_get(&loader->worker[k].read_ns);
        n_timed += stk_counter_get(&loader->worker[k].n_read_timed);
    }
    if (n < n_most) add_stage(loader, "", ns, n_timed, 0, NULL, 0, &out[n]);
    n++;
    for (int f = 0; f < dataset->source->n_fields; f++)
        for (int i = 0; i < loader->work.chain[f]->n_stages; i++) {
            int64_t n_stages = 0;
            ns = n_timed = 0;
            for (int k = 0; k < loader->work.n_workers; k++) {
                const stk_stage_time *t = &loader->worker[k].chain[f].time[i];
                ns += stk_counter_get(&t->ns);
                n_timed += stk_counter_get(&t->n_timed);
                if (stk_counter_get(&t->n_stages) > n_stages) n_stages = stk_counter_get(&t->n_stages);
            }
            if (n_timed == 0) continue;
            if (n < n_most)
                add_stage(loader, dataset->source->field[f].name, ns, n_timed, (int)n_stages, loader->work.chain[f], i,
                          &out[n]);
            n++;
        }
    return n < n_most ? n : n_most;
}

const char *stk_loader_skipped(const stk_loader *loader, int64_t i)
{
    return i >= 0 && i < loader->skips.n_kept ? loader->skips.kept[i].text : NULL;
}

const char *stk_loader_tuning(const stk_loader *loader, int i)
{
    return i >= 0 && i < loader->tuner.n_texts ? loader->tuner.text[i] : NULL;
}

const char *stk_input_verdict(double wait_share)
{
    return wait_share < 0.05 ? "not input-bound" : wait_share < 0.20 ? "moderately input-bound" : "highly input-bound";
}

/* See data/loader/worker.h. */
#include "data/loader/worker.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/plain_number.h"
#include "data/loader/budget.h"
#include "data/remote/request.h"
#include "trace/trace.h"

/* A claim aims at this much work, next to which a compare-and-swap and two readings of the clock are nothing. */
enum { CLAIM_NS = 50000 };

/* One record in N has its stages timed, fewer after a worker's first: reading the clock takes as long as a small
 * record does. */
enum { TIMED_EVERY = 16, FIRST_RECORDS = 4096, THEN_EVERY = 128 };

/* The order is known ahead, so that the source can fetch a record while those before it are made. */
enum { PREFETCH_ROWS = 4 };

/* Runs the stages of a padded field, whose row ends in what it is filled up with. */
static stk_status make_padded(stk_worker *worker, int f, const stk_stage_key *key, const stk_item *in, stk_slot *slot,
                              int64_t row, bool *wrong_size)
{
    const stk_dataset *dataset = worker->work->dataset;
    const stk_pad_plan *pad = &dataset->pad[f];
    size_t row_bytes = atomic_load_explicit(&slot->row_bytes[f], memory_order_relaxed);
    int64_t n_elements = pad->element_bytes ? (int64_t)(row_bytes / pad->element_bytes) : pad->longest;
    unsigned char *dst = slot->field[f] + (size_t)row * row_bytes;
    stk_field_type want = worker->work->want[f];
    stk_item got;
    want.desc.shape.dim[0] = STK_ANY;
    STK_RETURN_IF_ERROR(stk_chain_run_open(worker->work->chain[f], key, in, &want, dst, row_bytes, &worker->chain[f],
                                           &got, wrong_size));
    stk_status status = stk_pad_plan_finish(pad, &got, n_elements, dst, (int32_t *)slot->field[pad->i_length] + row);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "field '%s' ", dataset->source->field[f].name);
}

static stk_status make_field(stk_worker *worker, int f, const stk_stage_key *key, const stk_item *in, stk_slot *slot,
                             int64_t row, bool *wrong_size)
{
    const stk_work *work = worker->work;
    if (work->dataset->pad[f].on) return make_padded(worker, f, key, in, slot, row, wrong_size);
    return stk_chain_run(work->chain[f], key, in, &work->want[f], slot->field[f] + (size_t)row * work->row_bytes[f],
                         &worker->chain[f], wrong_size);
}

/* Whether samples differ by their first side. */
static bool could_be_padded(const stk_dataset *dataset)
{
    for (int f = 0; f < dataset->source->n_fields; f++) {
        stk_shape shape = stk_chain_type(&dataset->chain[f])->desc.shape;
        if (shape.rank == 0 || shape.dim[0] != STK_ANY) continue;
        shape.dim[0] = 1;
        if (stk_shape_known(shape)) return true;
    }
    return false;
}

/* The record's fields as the source has them, or what a cache keeps. */
static stk_status read_record(stk_worker *worker, const stk_stage_key *key, stk_item *item, bool *fatal)
{
    const stk_work *work = worker->work;
    const stk_source *source = work->dataset->source;
    int64_t i_record = (int64_t)key->i_sample;
    *fatal = false;
    if (worker->sample.is_there) return stk_sequence_give(&worker->sample, item, fatal);
    if (!work->cache) return stk_reader_read(&worker->reader, source, i_record, key, item);
    return stk_row_cache_read(work->cache, source, i_record, key, &worker->reader, &worker->cached, item);
}

static bool is_timed(int64_t i_record)
{
    int64_t every = i_record < FIRST_RECORDS ? TIMED_EVERY : THEN_EVERY;
    return i_record % every == every / 2;
}

/* Reads one record and writes all its fields to the row. *fatal: another record would not help. */
static stk_status make_record(stk_worker *worker, stk_order_place place, stk_slot *slot, int64_t row, bool *fatal)
{
    const stk_work *work = worker->work;
    const stk_dataset *dataset = work->dataset;
    const stk_source *source = dataset->source;
    stk_item item[STK_MAX_FIELDS];
    stk_stage_key key = {.seed = work->seed, .epoch = place.epoch, .i_sample = (uint64_t)place.i_record};
    stk_joint_sides joint;
    if (dataset->n_joints) {
        joint = (stk_joint_sides){0};
        key.joint = &joint;
    }
    bool wrong_size = false;
    bool timed = stk_trace_on() || (!work->no_stage_times && is_timed(stk_counter_get(&worker->n_records)));
    int64_t start_ns = timed ? stk_clock_ns() : 0;
    stk_counter_add(&worker->n_records, 1);
    stk_status status = read_record(worker, &key, item, fatal);
    if (timed && !work->sequence) {
        stk_counter_add(&worker->read_ns, stk_clock_ns() - start_ns);
        stk_counter_add(&worker->n_read_timed, 1);
        stk_trace_end(stk_trace_on() ? start_ns : 0, STK_TRACE_DATA, "read", 1);
    }
    for (int f = 0; f < source->n_fields && status == STK_OK; f++) {
        worker->chain[f].timed = timed;
        /* Where an encoded item came from the cache, nothing is known of it. */
        worker->chain[f].rows.hint = work->cache ? (stk_jpeg_hint){0} : worker->reader.scratch[f].jpeg;
        status = make_field(worker, f, &key, &item[f], slot, row, &wrong_size);
    }
    if (status == STK_OK) return STK_OK;
    /* A sample that is too long is no damage. */
    *fatal = *fatal || wrong_size || status == STK_MISMATCH || !stk_record_can_skip(status);
    if (!wrong_size) return stk_dataset_fail_record(dataset, status, place);
    char name[STK_RECORD_NAME_BYTES];
    stk_source_name(source, place.i_record, place.epoch, name, sizeof(name));
    stk_fail_prefix(status, "%s ", name);
    return stk_fail(status, "%s as %s has; %s", stk_error_text(), work->probe_name,
                    could_be_padded(dataset) ? "pad the batches" : "add a resize or crop stage");
}

stk_status stk_worker_make(stk_worker *worker, stk_order_place place, stk_slot *slot, int64_t row)
{
    bool fatal;
    return make_record(worker, place, slot, row, &fatal);
}

/* The same for a record that found no memory: once more, when everybody else has given back what he kept. */
static stk_status make_alone(stk_worker *worker, stk_order_place place, stk_slot *slot, int64_t row, bool *fatal)
{
    stk_memory *memory = worker->work->memory;
    stk_memory_stats before;
    stk_mutex_unlock(&worker->tenant.lock);
    stk_memory_begin_turn(memory);
    stk_memory_get_stats(memory, &before);
    stk_status status = make_record(worker, place, slot, row, fatal);
    stk_worker_trim(worker);
    stk_memory_end_turn(memory);
    stk_mutex_lock(&worker->tenant.lock);
    if (status != STK_NO_MEMORY) return status;
    char all[STK_PLAIN_TEXT], used[STK_PLAIN_TEXT];
    return stk_fail(status, "%s; the pipeline's memory limit of %s is too small for it: all but %s were free",
                    stk_error_text(), stk_plain_bytes((double)before.limit_bytes, all),
                    stk_plain_bytes((double)before.used_bytes, used));
}

/* Position of the i_try-th stand-in for the sample at `position`: drawn by key, so that every run draws the same. */
static int64_t draw_position(const stk_work *work, int64_t i_epoch, int64_t position, int64_t i_try)
{
    uint64_t h = stk_mix64(work->seed ^ stk_mix64((uint64_t)i_epoch ^ stk_mix64((uint64_t)position)));
    return (int64_t)(stk_mix64(h + (uint64_t)i_try) % (uint64_t)work->dataset->order.count);
}

/* Whether a stand-in's rows are no longer than those of the batch. */
static bool fits(const stk_dataset *dataset, const stk_slot *slot, int64_t i_record)
{
    for (int f = 0; f < dataset->source->n_fields; f++) {
        const stk_pad_plan *pad = &dataset->pad[f];
        if (pad->lengths && (size_t)stk_pad_plan_length(pad, i_record) * pad->element_bytes > slot->row_bytes[f])
            return false;
    }
    return true;
}

/* One that fits is drawn soon: half of all records are no longer than the longest of two. */
static bool draw_stand_in(const stk_work *work, const stk_slot *slot, int64_t i_epoch, int64_t position, int64_t i_try,
                          stk_order_place *out)
{
    for (int64_t k = 0; k < STK_MAX_TRIES; k++) {
        int64_t at = draw_position(work, i_epoch, position, i_try + k * (STK_MAX_TRIES + 1));
        *out = stk_order_map(&work->dataset->order, NULL, (uint64_t)i_epoch, at);
        if (fits(work->dataset, slot, out->i_record)) return true;
    }
    return false;
}

/* Makes the row from the record at `place`, or with on_error replace from a stand-in. */
static stk_status make_row(stk_worker *worker, const stk_claim *claim, int64_t row, int64_t i_epoch, int64_t position,
                           stk_order_place place)
{
    const stk_work *work = worker->work;
    const stk_dataset *dataset = work->dataset;
    int64_t n_tries = dataset->on_error == STK_ON_ERROR_REPLACE ? STK_MAX_TRIES : 0;
    for (int64_t i_try = 0;; i_try++) {
        bool fatal = false;
        stk_status status = make_record(worker, place, claim->slot, row, &fatal);
        if (status == STK_NO_MEMORY) status = make_alone(worker, place, claim->slot, row, &fatal);
        if (status == STK_OK || fatal || dataset->on_error == STK_ON_ERROR_STOP) return status;
        STK_RETURN_IF_ERROR(stk_skip_list_add(work->skips, claim->i_batch, row, i_try, place.i_record));
        /* The consumer takes the row out, once its batch is complete. */
        if (n_tries == 0) return STK_OK;
        if (i_try == n_tries)
            return stk_fail_prefix(status, "no readable record after %d tries, the last one ", (int)n_tries);
        if (!draw_stand_in(work, claim->slot, i_epoch, position, i_try, &place))
            return stk_fail_prefix(status, "no record in its place that is as short as the batch: ");
    }
}

/* Finds how long the padded rows of a batch are: as the longest of them, or as was asked for. */
static void measure_batch(stk_worker *worker, int64_t i_batch, int64_t i_epoch, size_t *row_bytes)
{
    const stk_work *work = worker->work;
    const stk_dataset *dataset = work->dataset;
    int64_t n_rows = stk_share_count(&work->share, i_batch), length[STK_MAX_FIELDS];
    const stk_share_rows rows = stk_share_find_rows(&work->share, i_batch);
    for (int f = 0; f < dataset->source->n_fields; f++)
        length[f] = dataset->pad[f].fixed;
    for (int64_t row = 0; row < n_rows && dataset->has_lengths; row++) {
        int64_t position = stk_share_position(&rows, row);
        stk_order_place place = stk_order_map(&dataset->order, &worker->length_cursor, (uint64_t)i_epoch, position);
        for (int f = 0; f < dataset->source->n_fields; f++) {
            int64_t n = dataset->pad[f].lengths ? stk_pad_plan_length(&dataset->pad[f], place.i_record) : 0;
            if (n > length[f]) length[f] = n;
        }
    }
    const stk_buckets_plan *buckets = &dataset->buckets;
    if (buckets->n && buckets->to_boundary) {
        int64_t *longest = &length[buckets->i_field];
        *longest = buckets->bucket[stk_buckets_find(buckets, *longest)].below - 1;
    }
    for (int f = 0; f < dataset->source->n_fields; f++)
        row_bytes[f] = (size_t)length[f] * dataset->pad[f].element_bytes;
}

/* By whoever comes first; two at once find the same. */
static void set_lengths(stk_worker *worker, const stk_claim *claim, int64_t i_epoch)
{
    const stk_dataset *dataset = worker->work->dataset;
    size_t row_bytes[STK_MAX_FIELDS];
    if (atomic_load_explicit(&claim->slot->i_measured, memory_order_acquire) == claim->i_batch + 1) return;
    measure_batch(worker, claim->i_batch, i_epoch, row_bytes);
    for (int f = 0; f < dataset->source->n_fields; f++)
        if (dataset->pad[f].on) atomic_store_explicit(&claim->slot->row_bytes[f], row_bytes[f], memory_order_relaxed);
    atomic_store_explicit(&claim->slot->i_measured, claim->i_batch + 1, memory_order_release);
}

/* False when the rows are not needed any more or one has failed: then the worker is to end. */
static bool make_rows(stk_worker *worker, const stk_claim *claim)
{
    const stk_work *work = worker->work;
    const stk_dataset *dataset = work->dataset;
    const stk_source *source = dataset->source;
    int64_t i_epoch, i_in_part, n_mapped = claim->from;
    stk_share_locate(&work->share, claim->i_batch, &i_epoch, &i_in_part);
    stk_order_place ahead[PREFETCH_ROWS]; /* by row */
    stk_share_rows rows = stk_share_find_rows(&work->share, claim->i_batch);
    if (work->repeats && claim->i_batch > 0) return true;
    if (work->repeats) {
        i_epoch = 0;
        rows = (stk_share_rows){.step = 1};
    }
    if (dataset->n_padded) set_lengths(worker, claim, i_epoch);
    if (claim->from == 0) stk_share_plan_ahead(&work->share, claim->i_batch);
    for (int64_t row = claim->from; row < claim->to; row++) {
        for (; n_mapped < claim->to && n_mapped < row + PREFETCH_ROWS; n_mapped++) {
            int64_t position = stk_share_position(&rows, n_mapped);
            stk_order_place place = stk_order_map(&dataset->order, &worker->cursor, (uint64_t)i_epoch, position);
            ahead[n_mapped % PREFETCH_ROWS] = place;
            if (source->class->prefetch) source->class->prefetch(source, place.i_record);
        }
        if (!stk_ring_needs(work->ring, claim->i_batch, row)) return false;
        stk_status status =
            make_row(worker, claim, row, i_epoch, stk_share_position(&rows, row), ahead[row % PREFETCH_ROWS]);
        if (status == STK_OK) continue;
        stk_ring_fail(work->ring, claim->i_batch, row, status);
        return false;
    }
    return true;
}

/* Rows worth a claim: enough to be worth it, and few enough that every worker has part in a batch. */
static int64_t rows_to_claim(const stk_worker *worker)
{
    const stk_work *work = worker->work;
    int64_t n_most = (work->dataset->n_rows + work->n_workers - 1) / work->n_workers;
    if (worker->row_ns <= 0) return 1;
    double n = CLAIM_NS / worker->row_ns;
    return n >= (double)n_most ? n_most : n < 1 ? 1 : (int64_t)n;
}

/* Samples that come in order are claimed singly, so that while one worker makes a row the next can read. */
static bool claim_rows(stk_worker *worker, stk_claim *claim)
{
    if (worker->work->sequence) return stk_sequence_claim(worker, claim);
    return stk_ring_claim(worker->work->ring, rows_to_claim(worker), claim);
}

/* False when the worker is to end. */
static bool make_claim(stk_worker *worker, const stk_claim *claim)
{
    int64_t start_ns = stk_clock_ns();
    const stk_work *work = worker->work;
    stk_mutex_lock(&worker->tenant.lock);
    if (work->ahead) stk_ahead_look(work->ahead, &worker->ahead, work->dataset, &work->share, work->n_total, claim);
    bool go_on = make_rows(worker, claim);
    stk_mutex_unlock(&worker->tenant.lock);
    if (!go_on) return false;
    int64_t work_ns = stk_clock_ns() - start_ns;
    double row_ns = (double)work_ns / (double)(claim->to - claim->from);
    /* The first row finds cold caches and empty scratch memory, so that it must not weigh for long. */
    worker->row_ns = worker->row_ns > 0 ? 0.5 * worker->row_ns + 0.5 * row_ns : row_ns;
    stk_counter_add(&worker->work_ns, work_ns);
    stk_trace_end(stk_trace_on() ? start_ns : 0, STK_TRACE_DATA, "rows", claim->i_batch);
    stk_ring_finish(worker->work->ring, claim);
    return true;
}

void stk_worker_assist(stk_worker *worker, int64_t end)
{
    const stk_work *work = worker->work;
    /* Shares so small that all workers end at about the same time. */
    int64_t n = work->dataset->n_rows / (4 * (int64_t)work->n_workers) + 1;
    stk_memory *before = stk_memory_use(work->memory);
    stk_claim claim;
    while (stk_ring_try_claim(work->ring, n, end, &claim) && make_claim(worker, &claim))
        continue;
    stk_memory_use(before);
}

void stk_worker_run(void *arg)
{
    stk_worker *worker = arg;
    stk_ring *ring = worker->work->ring;
    stk_claim claim;
    (void)stk_memory_use(worker->work->memory);
    stk_request_stop_when(&worker->work->is_closing);
    stk_mutex_lock(&worker->tenant.lock);
    worker->decoder = stk_jpeg_reader_of_thread();
    stk_mutex_unlock(&worker->tenant.lock);
    do
        stk_ring_take_turn(ring, worker->i_worker);
    while (claim_rows(worker, &claim) && make_claim(worker, &claim));
    /* Nothing is kept for a thread that has ended, and its decoder ends with it. */
    stk_mutex_lock(&worker->tenant.lock);
    stk_worker_trim(worker);
    worker->decoder = NULL;
    stk_mutex_unlock(&worker->tenant.lock);
    stk_ring_leave(ring);
}

void stk_worker_trim(stk_worker *worker)
{
    stk_reader_free(&worker->reader, worker->work->dataset->source);
    stk_order_cursor_free(&worker->cursor);
    stk_order_cursor_free(&worker->length_cursor);
    stk_ahead_trim(&worker->ahead);
    for (int i = 0; i < STK_MAX_FIELDS; i++)
        stk_chain_work_trim(&worker->chain[i]);
    stk_row_cache_trim(&worker->cached);
    if (worker->decoder) stk_jpeg_reader_trim(worker->decoder);
}

static void trim_tenant(void *worker)
{
    stk_worker_trim(worker);
}

stk_status stk_worker_init(stk_worker *worker, const stk_work *work)
{
    STK_RETURN_IF_ERROR(stk_memory_charge_lasting(work->memory, STK_WORKER_BYTES));
    worker->work = work;
    worker->tenant.trim = trim_tenant;
    worker->tenant.user = worker;
    stk_status status = stk_memory_join(work->memory, &worker->tenant);
    if (status != STK_OK) stk_memory_release(work->memory, STK_WORKER_BYTES);
    worker->is_tenant = status == STK_OK;
    return status;
}

void stk_worker_free(stk_worker *worker)
{
    if (!worker->is_tenant) return;
    stk_memory_leave(worker->work->memory, &worker->tenant);
    stk_worker_trim(worker);
    stk_memory_release(worker->work->memory, STK_WORKER_BYTES);
}

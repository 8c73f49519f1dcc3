/* The consumer's side of a loader: the next batch, and what is in it. See stoker/data/loader.h. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/loader/inside.h"
#include "stoker/data/ragged.h"
#include "trace/trace.h"

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

/* Where the samples have ended it says so in loader->ended, and there is no batch. */
static stk_status take_batch(stk_loader *loader, stk_batch *batch)
{
    int64_t i_batch = loader->i_next;
    stk_ring *ring = loader->work.ring;
    if (loader->parallel) make_next(loader);
    int n_ready = stk_ring_count_ready(ring, i_batch);
    stk_tuner_note_ready(&loader->tuner, n_ready);
    stk_trace_count("batches ready", n_ready);
    stk_status status = stk_ring_wait(ring, i_batch, &loader->wait_ns);
    if (status == STK_BUSY) return status;
    if (status != STK_OK && stk_ring_has_ended(ring, i_batch)) {
        loader->ended = true;
        return STK_OK;
    }
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

/* Of an epoch all of whose records were left out. */
static stk_status refuse_empty(const stk_loader *loader)
{
    const stk_skip_list *skips = &loader->skips;
    if (skips->n_kept == 0) return stk_fail(STK_CORRUPT, "no sample is left of a whole epoch");
    return stk_fail(STK_CORRUPT,
                    "no sample is left of a whole epoch: all of its records were left out, the first because of: %s",
                    skips->kept[0].text);
}

const stk_batch *stk_loader_next(stk_loader *loader)
{
    if (!loader) return NULL;
    if (loader->ended) return NULL;
    loader->status = STK_OK;
    stk_batch *batch = NULL;
    for (int i = 0; i < STK_MOST_HELD; i++)
        if (!loader->batch[i].held) batch = &loader->batch[i];
    if (!batch)
        return fail_next(loader, stk_fail(STK_BUSY, "%d batches are held: release one before the next", STK_MOST_HELD));
    while (loader->i_next < loader->ring_config.n_total) {
        stk_status status = take_batch(loader, batch);
        if (status != STK_OK) return fail_next(loader, status);
        if (loader->ended) break;
        if (loader->first_batch_s == 0) loader->first_batch_s = stk_process_age_s();
        bool is_first = stk_batch_index(batch) == 0;
        if (batch->n_rows > 0) {
            loader->is_empty = false;
            return batch;
        }
        stk_batch_release(batch); /* nothing is left of it */
        /* The next epoch would be no better, and there may be no last one. */
        if (is_first && loader->is_empty) {
            loader->ended = true;
            return fail_next(loader, refuse_empty(loader));
        }
        loader->is_empty |= is_first;
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

stk_status stk_batch_keep(const stk_batch *batch, stk_kept **out)
{
    if (!batch) return stk_fail(STK_INVALID, "there is no batch");
    STK_NEED(out);
    stk_loader *loader = batch->loader;
    *out = NULL;
    if (!loader->kept) return stk_fail(STK_INVALID, "no batch may be kept: 'n_kept' is 0");
    if (!batch->held) return stk_fail(STK_INVALID, "the batch is released");
    STK_RETURN_IF_ERROR(stk_kept_pool_take(loader->kept, loader->work.ring, batch->i_batch, out));
    stk_batch_release(batch);
    return STK_OK;
}

int64_t stk_loader_n_kept(stk_loader *loader)
{
    if (!loader) return 0;
    return loader->kept ? stk_kept_pool_count(loader->kept) : 0;
}

bool stk_loader_wait(stk_loader *loader, int timeout_ms)
{
    if (!loader) return false;
    if (loader->ended || loader->parallel || loader->i_next >= loader->ring_config.n_total) return true;
    return stk_ring_wait_ms(loader->work.ring, loader->i_next, timeout_ms > 0 ? timeout_ms : 0, &loader->wait_ns);
}

stk_status stk_loader_status(const stk_loader *loader)
{
    if (!loader) return stk_fail(STK_INVALID, "there is no loader");
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
    if (!batch) return NULL;
    int of, i = find_slot_field(batch->loader->work.dataset, field, &of);
    return i < 0 ? NULL : batch->slot->field[i];
}

/* Of slot field i, which is the source's field `of` or its lengths. */
static stk_shape shape_of(const stk_batch *batch, int i, int of)
{
    const stk_work *work = &batch->loader->work;
    stk_shape shape = {.rank = 1, .dim = {rows_of(batch)}};
    if (i != of) return shape;
    const stk_shape *row = &work->want[of].desc.shape;
    const stk_pad_plan *pad = &work->dataset->pad[of];
    for (int k = 0; k < row->rank; k++)
        shape.dim[shape.rank++] = row->dim[k];
    if (pad->on && pad->element_bytes) shape.dim[1] = (int64_t)(batch->slot->row_bytes[of] / pad->element_bytes);
    return shape;
}

stk_status stk_batch_shape(const stk_batch *batch, const char *field, stk_shape *out)
{
    if (!batch) return stk_fail(STK_INVALID, "there is no batch");
    STK_NEED(out);
    int of, i = find_slot_field(batch->loader->work.dataset, field, &of);
    if (i < 0) return stk_fail(STK_NOT_FOUND, "the batch has no field '%s'", field ? field : "");
    *out = shape_of(batch, i, of);
    return STK_OK;
}

/* Without snprintf, since it is asked for each batch. */
static void join_name(char *out, const char *name, const char *end)
{
    size_t n = strnlen(name, STK_BATCH_NAME_BYTES - 1), n_end = strnlen(end, STK_BATCH_NAME_BYTES - 1 - n);
    memcpy(out, name, n);
    memcpy(out + n, end, n_end);
    out[n + n_end] = 0;
}

stk_status stk_batch_field(const stk_batch *batch, int i, stk_batch_array *out)
{
    if (!batch) return stk_fail(STK_INVALID, "there is no batch");
    STK_NEED(out);
    const stk_work *work = &batch->loader->work;
    const stk_source *source = work->dataset->source;
    if (i < 0 || i >= batch->loader->ring_config.n_fields)
        return stk_fail(STK_NOT_FOUND, "the batch has no field number %d", i);
    int of = i;
    if (i >= source->n_fields) /* lengths */
        for (of = 0; of < source->n_fields - 1 && !(work->dataset->pad[of].on && work->dataset->pad[of].i_length == i);)
            of++;
    out->dtype = of == i ? work->want[i].desc.dtype : STK_I32;
    join_name(out->name, source->field[of].name, of == i ? "" : ".length");
    out->data = batch->slot->field[i];
    out->shape = shape_of(batch, i, of);
    return STK_OK;
}

int64_t stk_batch_count(const stk_batch *batch)
{
    if (!batch) return 0;
    return batch->n_rows;
}

int64_t stk_batch_epoch(const stk_batch *batch)
{
    if (!batch) return 0;
    int64_t i_epoch, i_in_epoch;
    stk_share_locate(&batch->loader->work.share, batch->i_batch, &i_epoch, &i_in_epoch);
    return i_epoch;
}

int64_t stk_batch_index(const stk_batch *batch)
{
    if (!batch) return 0;
    int64_t i_epoch, i_in_epoch;
    stk_share_locate(&batch->loader->work.share, batch->i_batch, &i_epoch, &i_in_epoch);
    return i_in_epoch;
}

int64_t stk_batch_done(const stk_batch *batch)
{
    if (!batch) return 0;
    return stk_share_done(&batch->loader->work.share, batch->i_batch);
}

uint64_t stk_batch_hash(const stk_batch *batch)
{
    if (!batch) return 0;
    const stk_ring_config *ring = &batch->loader->ring_config;
    size_t n_rows = (size_t)rows_of(batch);
    uint64_t hash = (uint64_t)stk_batch_count(batch);
    for (int f = 0; f < ring->n_fields; f++)
        hash = stk_hash64(batch->slot->field[f], batch->slot->row_bytes[f] * n_rows, hash);
    return hash;
}

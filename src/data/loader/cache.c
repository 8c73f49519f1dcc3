/* Opening the cache of a data set for a loader: what it will take, and whether it pays, for which a few records are
 * made with and without it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "data/loader/budget.h"
#include "data/loader/inside.h"

enum { MOST_MEASURED = 32, MOST_TIMED = 8, ROW_BYTES = 64 /* of a store's table, for each record */ };

/* With so much left, what other loaders' workers keep is in nobody's way. */
#define PLENTY ((size_t)256 << 20)

/* The records that are looked at, over all of the source. */
static int64_t record_of(const stk_source *source, int i, int n)
{
    return (int64_t)((double)i / n * (double)source->n_records);
}

static stk_order_place place_of(const stk_source *source, int i, int n)
{
    return (stk_order_place){.i_record = record_of(source, i, n)};
}

/* ns for a sample. A record that finds no memory was not made, so that its time says nothing. */
static stk_status time_rows(stk_worker *worker, stk_slot *slot, int n, double *ns)
{
    int64_t start_ns = stk_clock_ns();
    for (int i = 0; i < n; i++)
        if (stk_worker_make(worker, place_of(worker->work->dataset->source, i, n), slot, 0) == STK_NO_MEMORY)
            return STK_NO_MEMORY;
    *ns = (double)(stk_clock_ns() - start_ns) / n;
    return STK_OK;
}

/* Twice each, of which the first warms what is cold. STK_NO_MEMORY where both ways together do not fit into the limit.
 */
static stk_status compare(stk_row_cache *cache, const stk_work *work, stk_worker *worker, int n)
{
    stk_slot slot = {0};
    stk_block row = {0};
    stk_work with = *work;
    stk_status status;
    /* Only what is written of it comes to be: the rows of these few records, and its table. */
    int64_t n_records = work->dataset->source->n_records;
    size_t kept = (size_t)((double)cache->stats.likely_bytes / (double)n_records * n) + (size_t)n_records * ROW_BYTES;
    STK_RETURN_IF_ERROR(stk_memory_charge(work->memory, kept));
    STK_TRY(stk_budget_row(work, &slot, &row));
    STK_TRY(stk_row_store_in_memory(n_records, cache->stats.likely_bytes, &cache->store));
    with.cache = cache;
    for (int f = 0; f < work->dataset->source->n_fields; f++)
        with.chain[f] = &cache->rest[f];
    cache->kind = STK_CACHE_MEMORY;
    for (int k = 0; k < 2; k++) {
        worker->work = work;
        STK_TRY(time_rows(worker, &slot, n, &cache->stats.ns_without));
        worker->work = &with;
        STK_TRY(time_rows(worker, &slot, n, &cache->stats.ns_with));
    }
    atomic_store(&cache->n_hits, 0);
    atomic_store(&cache->n_misses, 0);
done:
    worker->work = work;
    cache->kind = STK_CACHE_NONE;
    stk_row_store_close(cache->store);
    cache->store = NULL;
    stk_block_free(&row);
    stk_memory_release(work->memory, kept);
    return status;
}

/* Sets stats.likely_bytes, and for AUTO the times. What it takes is in the loader's account, as a worker's is: none has
 * begun yet. */
static stk_status measure(stk_row_cache *cache, const stk_work *work)
{
    const stk_source *source = work->dataset->source;
    stk_memory *before = stk_memory_use(work->memory);
    stk_status status = STK_OK;
    size_t sum = 0;
    int n = source->n_records < MOST_MEASURED ? (int)source->n_records : MOST_MEASURED, n_good = 0;
    stk_worker *worker = calloc(1, sizeof(*worker));
    bool tight = stk_memory_left(work->memory) < PLENTY;
    if (tight) stk_memory_begin_turn(work->memory);
    if (!worker) STK_TRY(stk_fail_memory(sizeof(*worker)));
    worker->work = work;
    worker->decoder = stk_jpeg_reader_of_thread();
    stk_worker_trim(worker);
    for (int i = 0; i < n; i++) {
        stk_item item[STK_MAX_FIELDS];
        stk_stage_key key = {0};
        stk_span row;
        /* Those that are corrupt are for the run to report. */
        if (stk_row_cache_make(cache, source, record_of(source, i, n), &key, &worker->reader, &worker->cached, item) !=
                STK_OK ||
            stk_row_cache_pack(source, item, &worker->cached, &row) != STK_OK)
            continue;
        sum += row.n;
        n_good++;
    }
    /* A tenth more for what differs among records, where that does. */
    if (n_good) cache->stats.likely_bytes = (size_t)((double)sum / n_good * 1.1 * (double)source->n_records);
    if (cache->wanted == STK_CACHE_AUTO && n_good) {
        status = compare(cache, work, worker, n < MOST_TIMED ? n : MOST_TIMED);
        if (status == STK_NO_MEMORY) {
            /* A limit that has no room for a comparison has none for a cache. */
            cache->stats.ns_with = cache->stats.ns_without = 0;
            cache->stats.likely_bytes = 0;
            status = STK_OK;
        }
    }
done:
    if (worker) stk_worker_trim(worker);
    free(worker);
    if (tight) stk_memory_end_turn(work->memory);
    (void)stk_memory_use(before);
    return status;
}

/* --- opening --- */

static int first_random(const stk_chain *chain)
{
    int n = 0;
    while (n < chain->n_stages && !chain->stage[n]->class->random)
        n++;
    return n;
}

/* What the cache may take of what slots and workers leave: most of it, since those keep memory of their own, too. */
static size_t allowed_bytes(const stk_work *work)
{
    size_t left = stk_memory_left(work->memory), workers = (size_t)work->n_workers * ((size_t)4 << 20);
    return left > workers ? (left - workers) / 4 * 3 : 0;
}

static stk_status open_memory(stk_row_cache *cache, const stk_work *work)
{
    size_t allowed = allowed_bytes(work), table = (size_t)work->dataset->source->n_records * ROW_BYTES;
    size_t wanted = cache->stats.likely_bytes + table;
    if (cache->stats.likely_bytes == 0) return STK_OK; /* not one of those that were looked at fits, or is good */
    if (cache->wanted == STK_CACHE_AUTO && (wanted > allowed || cache->stats.ns_with > 0.75 * cache->stats.ns_without))
        return STK_OK;
    size_t reserved = wanted < allowed ? wanted : allowed;
    if (reserved <= table) return STK_OK; /* no room for one row */
    cache->kind = STK_CACHE_MEMORY;
    cache->stats.reserved_bytes = reserved;
    return stk_row_store_in_memory(work->dataset->source->n_records, reserved - table, &cache->store);
}

static stk_status open_cache(stk_row_cache *cache, const stk_work *work)
{
    const stk_dataset *dataset = work->dataset;
    const stk_source *source = dataset->source;
    if (source->class->read_keyed)
        return stk_fail(STK_UNSUPPORTED,
                        "a cache needs records that are the same in every epoch, which those of '%s' "
                        "are not: use it with one source",
                        source->class->name);
    for (int f = 0; f < source->n_fields; f++)
        stk_chain_cut(&dataset->chain[f], first_random(&dataset->chain[f]), &cache->head[f], &cache->rest[f]);
    cache->stats.n_records = source->n_records;
    STK_RETURN_IF_ERROR(measure(cache, work));
    if (cache->wanted != STK_CACHE_DISK) return open_memory(cache, work);
    STK_RETURN_IF_ERROR(stk_row_cache_open_file(cache, source));
    cache->kind = STK_CACHE_DISK;
    return STK_OK;
}

stk_status stk_loader_open_cache(const stk_dataset *dataset, stk_work *work, size_t *charged)
{
    stk_row_cache *cache = dataset->cache;
    *charged = 0;
    if (!cache) return STK_OK;
    stk_mutex_lock(&cache->lock);
    stk_status status = cache->is_open ? STK_OK : open_cache(cache, work);
    cache->is_open = cache->is_open || status == STK_OK;
    stk_mutex_unlock(&cache->lock);
    STK_RETURN_IF_ERROR(status);
    if (cache->kind == STK_CACHE_NONE) return STK_OK;
    STK_RETURN_IF_ERROR(stk_memory_charge_lasting(work->memory, cache->stats.reserved_bytes));
    *charged = cache->stats.reserved_bytes;
    work->cache = cache;
    for (int f = 0; f < dataset->source->n_fields; f++)
        work->chain[f] = &cache->rest[f];
    return STK_OK;
}

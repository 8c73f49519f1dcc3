/* What a cache of a data set will take, and whether it pays: a few records are made with and without it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "data/budget.h"
#include "data/cache/row_cache.h"

enum { MOST_MEASURED = 32, MOST_TIMED = 8 };

/* The records that are looked at, over all of the source. */
static int64_t record_of(const stk_source *source, int i, int n)
{
    return (int64_t)((double)i / n * (double)source->n_records);
}

static stk_order_place place_of(const stk_source *source, int i, int n)
{
    return (stk_order_place){.i_record = record_of(source, i, n)};
}

/* ns for a sample. */
static double time_rows(stk_worker *worker, stk_slot *slot, int n)
{
    int64_t start_ns = stk_clock_ns();
    for (int i = 0; i < n; i++)
        (void)stk_worker_make(worker, place_of(worker->work->dataset->source, i, n), slot, 0);
    return (double)(stk_clock_ns() - start_ns) / n;
}

/* Twice each, of which the first warms what is cold. */
static stk_status compare(stk_row_cache *cache, const stk_work *work, stk_worker *worker, int n)
{
    stk_slot slot = {0};
    stk_block row = {0};
    stk_work with = *work;
    stk_status status;
    STK_TRY(stk_budget_row(work, &slot, &row));
    STK_TRY(stk_row_store_in_memory(work->dataset->source->n_records, cache->stats.likely_bytes, &cache->store));
    with.cache = cache;
    for (int f = 0; f < work->dataset->source->n_fields; f++)
        with.chain[f] = &cache->rest[f];
    cache->kind = STK_CACHE_MEMORY;
    for (int k = 0; k < 2; k++) {
        worker->work = work;
        cache->stats.ns_without = time_rows(worker, &slot, n);
        worker->work = &with;
        cache->stats.ns_with = time_rows(worker, &slot, n);
    }
    atomic_store(&cache->n_hits, 0);
    atomic_store(&cache->n_misses, 0);
done:
    worker->work = work;
    cache->kind = STK_CACHE_NONE;
    stk_row_store_close(cache->store);
    cache->store = NULL;
    stk_block_free(&row);
    return status;
}

stk_status stk_row_cache_measure(stk_row_cache *cache, const stk_work *work)
{
    const stk_source *source = work->dataset->source;
    stk_memory *before = stk_memory_use(NULL);
    stk_status status = STK_OK;
    size_t sum = 0;
    int n = source->n_records < MOST_MEASURED ? (int)source->n_records : MOST_MEASURED, n_good = 0;
    stk_worker *worker = calloc(1, sizeof(*worker));
    if (!worker) STK_TRY(stk_fail_memory(sizeof(*worker)));
    worker->work = work;
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
    if (cache->wanted == STK_CACHE_AUTO && n_good)
        STK_TRY(compare(cache, work, worker, n < MOST_TIMED ? n : MOST_TIMED));
done:
    if (worker) stk_worker_trim(worker);
    free(worker);
    (void)stk_memory_use(before);
    return status;
}

/* The cache as a part of a data set; see stoker/data/cache.h. A loader opens it (data/loader/cache.c). */
#include "stoker/data/cache.h"

#include "base/error.h"
#include "data/dataset/dataset.h"

void stk_dataset_cache(stk_dataset *dataset, stk_cache_kind kind, const char *path)
{
    if (!dataset) return;
    stk_status status = STK_OK;
    if (dataset->status != STK_OK) return;
    if (kind != STK_CACHE_NONE && !stk_dataset_has_numbers(dataset, "cache")) return;
    stk_row_cache_free(dataset->cache);
    dataset->cache = NULL;
    if ((unsigned)kind > STK_CACHE_AUTO) status = stk_fail(STK_INVALID, "there is no kind of cache %d", (int)kind);
    if (status == STK_OK && kind != STK_CACHE_NONE) status = stk_row_cache_new(kind, path, &dataset->cache);
    stk_dataset_keep_error(dataset, status);
}

void stk_dataset_get_cache(const stk_dataset *dataset, stk_cache_stats *out)
{
    if (!out) return;
    if (!dataset) {
        *out = (stk_cache_stats){0};
        return;
    }
    stk_row_cache *cache = dataset->cache;
    *out = (stk_cache_stats){.kind = STK_CACHE_NONE};
    if (!cache) return;
    stk_mutex_lock(&cache->lock);
    *out = cache->stats;
    out->kind = cache->kind;
    out->n_hits = atomic_load(&cache->n_hits);
    out->n_misses = atomic_load(&cache->n_misses);
    if (cache->store) {
        stk_row_store_count(cache->store, &out->n_present, &out->n_bytes);
        out->disk_is_full = stk_row_store_is_full(cache->store);
    }
    stk_mutex_unlock(&cache->lock);
}

/* See data/loader/kept.h. */
#include "data/loader/kept.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

struct stk_kept {
    stk_kept_pool *pool;
    void *memory;
    stk_kept *next; /* of the free ones */
};

struct stk_kept_pool {
    stk_ring_config config; /* config.memory: guarded by lock; NULL once the loader is closed */
    size_t bytes;           /* of a buffer */
    size_t reserve;         /* of the account, which is the workers' */
    stk_mutex lock;
    stk_kept *free;    /* guarded by lock */
    int64_t n_free;    /* guarded by lock */
    int64_t n_kept;    /* guarded by lock */
    bool is_closed;    /* guarded by lock */
    int64_t most_free; /* more than that go back to the system */
};

static void free_buffer(stk_kept *kept)
{
    stk_kept_pool *pool = kept->pool;
    stk_ring_memory_free(&pool->config, kept->memory);
    stk_memory_release(pool->config.memory, pool->config.memory ? pool->bytes : 0);
    free(kept);
}

static stk_status make_buffer(stk_kept_pool *pool, stk_kept **out)
{
    stk_kept *kept = calloc(1, sizeof(*kept));
    if (!kept) return stk_fail_memory(sizeof(*kept));
    stk_memory *memory = pool->config.memory;
    size_t left = stk_memory_left(memory);
    stk_status status = STK_OK;
    if (pool->reserve && (left < pool->reserve || left - pool->reserve < pool->bytes))
        status = stk_fail(STK_NO_MEMORY, "%.1f MiB are left, which the workers may need", (double)left / (1 << 20));
    /* Later on the lock is held, and tenants may wait for who wants it. */
    if (status == STK_OK)
        status =
            pool->reserve ? stk_memory_charge(memory, pool->bytes) : stk_memory_charge_lasting(memory, pool->bytes);
    if (status != STK_OK) {
        free(kept);
        return status;
    }
    kept->pool = pool;
    kept->memory = stk_ring_memory_get(&pool->config);
    if (!kept->memory) {
        free_buffer(kept);
        return stk_fail_memory(pool->bytes);
    }
    *out = kept;
    return STK_OK;
}

static void push(stk_kept_pool *pool, stk_kept *kept)
{
    kept->next = pool->free;
    pool->free = kept;
    pool->n_free++;
}

static stk_kept *pop(stk_kept_pool *pool)
{
    stk_kept *kept = pool->free;
    if (!kept) return NULL;
    pool->free = kept->next;
    pool->n_free--;
    return kept;
}

stk_status stk_kept_pool_new(const stk_ring_config *config, int n, size_t reserve, stk_kept_pool **out)
{
    stk_kept_pool *pool = calloc(1, sizeof(*pool));
    if (!pool) return stk_fail_memory(sizeof(*pool));
    *pool = (stk_kept_pool){
        .config = *config, .bytes = stk_ring_slot_bytes(config), .most_free = (int64_t)config->n_slots + n};
    stk_status status = stk_mutex_init(&pool->lock);
    if (status != STK_OK) {
        free(pool);
        return status;
    }
    for (int i = 0; i < n && status == STK_OK; i++) {
        stk_kept *kept = NULL;
        status = make_buffer(pool, &kept);
        if (status == STK_OK) push(pool, kept);
    }
    pool->reserve = reserve;
    if (status == STK_OK)
        *out = pool;
    else
        stk_kept_pool_close(pool);
    return status;
}

/* The last one to go takes the pool along. The lock is held, and is gone afterwards where that happens. */
static void leave(stk_kept_pool *pool)
{
    bool is_last = pool->is_closed && pool->n_kept == 0;
    stk_mutex_unlock(&pool->lock);
    if (!is_last) return;
    stk_mutex_destroy(&pool->lock);
    free(pool);
}

void stk_kept_pool_close(stk_kept_pool *pool)
{
    if (!pool) return;
    stk_mutex_lock(&pool->lock);
    for (stk_kept *kept; (kept = pop(pool));)
        free_buffer(kept);
    stk_memory_release(pool->config.memory, (size_t)pool->n_kept * pool->bytes);
    pool->config.memory = NULL;
    pool->is_closed = true;
    leave(pool);
}

stk_status stk_kept_pool_take(stk_kept_pool *pool, stk_ring *ring, int64_t i_batch, stk_kept **out)
{
    stk_mutex_lock(&pool->lock);
    stk_kept *kept = pop(pool);
    stk_status status = kept ? STK_OK : make_buffer(pool, &kept);
    int64_t n_kept = status == STK_OK ? ++pool->n_kept : pool->n_kept;
    stk_mutex_unlock(&pool->lock);
    if (status != STK_OK)
        return stk_fail_prefix(status, "%lld batches are kept, and there is no room for another: ", (long long)n_kept);
    stk_ring_swap_memory(ring, i_batch, &kept->memory);
    *out = kept;
    return STK_OK;
}

int64_t stk_kept_pool_count(stk_kept_pool *pool)
{
    stk_mutex_lock(&pool->lock);
    int64_t n = pool->n_kept;
    stk_mutex_unlock(&pool->lock);
    return n;
}

void stk_kept_release(stk_kept *kept)
{
    if (!kept) return;
    stk_kept_pool *pool = kept->pool;
    stk_mutex_lock(&pool->lock);
    pool->n_kept--;
    if (pool->is_closed || pool->n_free >= pool->most_free)
        free_buffer(kept);
    else
        push(pool, kept);
    leave(pool);
}

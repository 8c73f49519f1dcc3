/* See parallel.h. One word, the ticket, says what there is to do, and a part is claimed by changing a word, once for
 * all:
 *
 *   no more parts than threads    part i is thread i's, so that what it leaves in a core's caches is there in the next
 *                                 call; its claim is a word of its own, and nobody waits for a line that all want.
 *                                 What a thread has not claimed yet is taken by the caller, and by helpers with
 *                                 nothing to do
 *   more                          the next part is in the ticket, and claimed by moving it on
 */
#include "device/cpu/threads/parallel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"

#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() ((void)0)
#endif

/* About a tenth of a millisecond: the gaps between the kernels of a small network are shorter, and waking a sleeper
 * costs as much. */
enum { N_SPINS = 8000, HELP_AFTER = 60, MOST_PARTS = 0xffff };

/* Two lines, since processors fetch them by twos. */
enum { APART = 128 };

/* Whose part i is claimed: the ticket of the last call in which it was. */
typedef struct part_claim {
    _Alignas(APART) _Atomic uint64_t ticket;
} part_claim;

struct stk_cpu_pool {
    /* IS_OWN | call << 16 | n_parts, or call << 32 | n_parts << 16 | the next part */
    _Alignas(APART) _Atomic uint64_t ticket;
    _Atomic(stk_cpu_body) body; /* of the call; written before its ticket */
    _Atomic(const void *) task;
    _Alignas(APART) _Atomic int n_left;     /* parts of the call that are not done */
    _Alignas(APART) _Atomic int n_sleeping; /* helpers */
    _Atomic bool caller_sleeps, ends;
    atomic_flag in_use;
    stk_mutex lock; /* for sleeping alone */
    stk_cond has_work, is_done;
    bool has_lock, has_work_cond, has_done_cond;
    int n_helpers;
    uint64_t n_calls;
    part_claim *claim;     /* of each thread's part */
    _Atomic int n_started; /* helpers that know their number */
    stk_thread *helper;
    const stk_numa *numa; /* NULL: none */
};

static _Thread_local stk_cpu_pool *current;
static _Thread_local int i_worker; /* 0 in callers */

/* --- parts --- */

static const uint64_t IS_OWN = (uint64_t)1 << 63;

/* Whether there may be a part for a helper that has looked at the call of ticket `seen`. */
static bool has_parts(const stk_cpu_pool *pool, uint64_t seen)
{
    uint64_t ticket = atomic_load(&pool->ticket);
    return ticket & IS_OWN ? ticket != seen : (ticket & MOST_PARTS) < (ticket >> 16 & MOST_PARTS);
}

static void run_part(stk_cpu_pool *pool, stk_cpu_body body, const void *task, int i_part, int n_parts)
{
    body(task, i_part, n_parts);
    if (atomic_fetch_sub(&pool->n_left, 1) == 1 && atomic_load(&pool->caller_sleeps)) {
        stk_mutex_lock(&pool->lock);
        stk_cond_signal(&pool->is_done);
        stk_mutex_unlock(&pool->lock);
    }
}

/* Part i_part of the call of this ticket, if nobody has claimed it: then the call is not over, and body and task are
 * its own. */
static void do_own_part(stk_cpu_pool *pool, uint64_t ticket, int i_part)
{
    uint64_t last = atomic_load(&pool->claim[i_part].ticket);
    int n_parts = (int)(ticket & MOST_PARTS);
    if (last >= ticket || i_part >= n_parts) return;
    stk_cpu_body body = atomic_load(&pool->body);
    const void *task = atomic_load(&pool->task);
    if (atomic_compare_exchange_strong(&pool->claim[i_part].ticket, &last, ticket))
        run_part(pool, body, task, i_part, n_parts);
}

static void do_parts_of_others(stk_cpu_pool *pool)
{
    uint64_t ticket = atomic_load(&pool->ticket);
    for (int i = 0; ticket & IS_OWN && i < (int)(ticket & MOST_PARTS); i++)
        do_own_part(pool, ticket, i);
}

/* The task stays while its ticket does: the next call waits for the part that is claimed here. */
static bool do_next_part(stk_cpu_pool *pool)
{
    uint64_t ticket = atomic_load(&pool->ticket);
    int i_part = (int)(ticket & MOST_PARTS), n_parts = (int)(ticket >> 16 & MOST_PARTS);
    if (ticket & IS_OWN || i_part >= n_parts) return false;
    stk_cpu_body body = atomic_load(&pool->body);
    const void *task = atomic_load(&pool->task);
    if (atomic_compare_exchange_strong(&pool->ticket, &ticket, ticket + 1)) /* else somebody was faster */
        run_part(pool, body, task, i_part, n_parts);
    return true;
}

/* --- helpers --- */

static void sleep_for_parts(stk_cpu_pool *pool, uint64_t seen)
{
    stk_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->n_sleeping, 1);
    while (!has_parts(pool, seen) && !atomic_load(&pool->ends))
        stk_cond_wait(&pool->has_work, &pool->lock);
    atomic_fetch_sub(&pool->n_sleeping, 1);
    stk_mutex_unlock(&pool->lock);
}

static void help(void *arg)
{
    stk_cpu_pool *pool = arg;
    uint64_t seen = 0;
    i_worker = atomic_fetch_add(&pool->n_started, 1) + 1;
    if (pool->numa) stk_numa_bind_thread(pool->numa, i_worker);
    while (!atomic_load(&pool->ends)) {
        uint64_t ticket = atomic_load(&pool->ticket);
        if (ticket & IS_OWN && ticket != seen) {
            seen = ticket;
            do_own_part(pool, ticket, i_worker);
        }
        while (do_next_part(pool))
            continue;
        for (int i = 0; i < N_SPINS && !has_parts(pool, seen); i++) {
            RELAX();
            if (i == HELP_AFTER) do_parts_of_others(pool);
        }
        if (!has_parts(pool, seen)) sleep_for_parts(pool, seen);
    }
}

stk_status stk_cpu_pool_new(int n_threads, const stk_numa *numa, stk_cpu_pool **out)
{
    stk_status status = STK_OK;
    *out = NULL;
    if (n_threads <= 1) return STK_OK;
    stk_cpu_pool *pool = aligned_alloc(APART, sizeof(*pool));
    if (!pool) return stk_fail_memory(sizeof(*pool));
    memset(pool, 0, sizeof(*pool));
    atomic_flag_clear(&pool->in_use);
    pool->numa = numa;
    STK_TRY(stk_mutex_init(&pool->lock));
    pool->has_lock = true;
    STK_TRY(stk_cond_init(&pool->has_work));
    pool->has_work_cond = true;
    STK_TRY(stk_cond_init(&pool->is_done));
    pool->has_done_cond = true;
    pool->claim = aligned_alloc(APART, (size_t)n_threads * sizeof(*pool->claim));
    if (!pool->claim) STK_TRY(stk_fail_memory((size_t)n_threads * sizeof(*pool->claim)));
    memset(pool->claim, 0, (size_t)n_threads * sizeof(*pool->claim));
    pool->helper = calloc((size_t)n_threads, sizeof(*pool->helper));
    if (!pool->helper) STK_TRY(stk_fail_memory((size_t)n_threads * sizeof(*pool->helper)));
    for (; pool->n_helpers < n_threads - 1; pool->n_helpers++) {
        char name[24];
        snprintf(name, sizeof(name), "stk-cpu-%d", pool->n_helpers + 1);
        STK_TRY(stk_thread_start(&pool->helper[pool->n_helpers], name, false, help, pool));
    }
    *out = pool;
    pool = NULL;
done:
    stk_cpu_pool_free(pool);
    return status;
}

void stk_cpu_pool_free(stk_cpu_pool *pool)
{
    if (!pool) return;
    if (pool->n_helpers > 0) {
        stk_mutex_lock(&pool->lock);
        atomic_store(&pool->ends, true);
        stk_cond_broadcast(&pool->has_work);
        stk_mutex_unlock(&pool->lock);
    }
    for (int i = 0; i < pool->n_helpers; i++)
        stk_thread_join(&pool->helper[i]);
    free(pool->helper);
    free(pool->claim);
    if (pool->has_done_cond) stk_cond_destroy(&pool->is_done);
    if (pool->has_work_cond) stk_cond_destroy(&pool->has_work);
    if (pool->has_lock) stk_mutex_destroy(&pool->lock);
    free(pool);
}

int stk_cpu_worker(void)
{
    return i_worker;
}

/* --- the caller --- */

stk_cpu_pool *stk_cpu_pool_enter(stk_cpu_pool *pool)
{
    stk_cpu_pool *before = current;
    current = pool;
    return before;
}

/* Asleep, the caller leaves its core to a helper that was preempted in the middle of a part. */
static void wait_for_parts(stk_cpu_pool *pool)
{
    for (int i = 0; i < N_SPINS; i++) {
        if (atomic_load(&pool->n_left) == 0) return;
        RELAX();
    }
    stk_mutex_lock(&pool->lock);
    atomic_store(&pool->caller_sleeps, true);
    while (atomic_load(&pool->n_left) != 0)
        stk_cond_wait(&pool->is_done, &pool->lock);
    atomic_store(&pool->caller_sleeps, false);
    stk_mutex_unlock(&pool->lock);
}

void stk_cpu_parallel(int n_parts, stk_cpu_body body, const void *task)
{
    stk_cpu_pool *pool = current;
    if (n_parts <= 1 || n_parts > MOST_PARTS || !pool || atomic_flag_test_and_set(&pool->in_use)) {
        for (int i = 0; i < n_parts; i++)
            body(task, i, n_parts);
        return;
    }
    bool own = n_parts <= pool->n_helpers + 1;
    uint64_t call = ++pool->n_calls, parts = (uint64_t)n_parts;
    uint64_t ticket = own ? IS_OWN | call << 16 | parts : call << 33 >> 1 | parts << 16;
    atomic_store_explicit(&pool->n_left, n_parts, memory_order_relaxed);
    atomic_store_explicit(&pool->body, body, memory_order_relaxed);
    atomic_store_explicit(&pool->task, task, memory_order_relaxed);
    atomic_store(&pool->ticket, ticket);
    if (atomic_load(&pool->n_sleeping) > 0) {
        stk_mutex_lock(&pool->lock);
        stk_cond_broadcast(&pool->has_work);
        stk_mutex_unlock(&pool->lock);
    }
    if (own) do_parts_of_others(pool); /* its own first */
    while (do_next_part(pool))
        continue;
    wait_for_parts(pool);
    atomic_flag_clear(&pool->in_use);
}

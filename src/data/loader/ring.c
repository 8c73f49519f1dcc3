/* See data/loader/ring.h.
 *
 * Sleeping is what costs: a wake-up takes as long as making many small rows. So a worker sleeps only when every slot is
 * claimed, and is woken when half of them are free again or when the consumer has to wait. Claims, row counts and
 * releases are atomic words; the lock guards sleeping and the error alone. The words that decide who must wake whom are
 * written before they are read by the other side, in the one order that all threads agree on.
 */
#include "data/loader/ring.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, NAP_NS = 100000 };

struct stk_ring {
    _Alignas(64) _Atomic uint64_t claim;  /* batch << row_bits | row: the first row not claimed */
    _Alignas(64) _Atomic int64_t n_freed; /* batches before this one are released */
    _Atomic uint64_t limit;               /* rows from here on are not needed; UINT64_MAX while all is well */
    _Atomic int64_t end;                  /* no batch from here on is whole; INT64_MAX until stk_ring_end */
    _Atomic int64_t n_last_rows;          /* samples of batch `end` */
    _Atomic int64_t wanted;               /* the batch that the consumer sleeps for, or -1 */
    _Atomic int n_sleeping;               /* workers */
    _Atomic int n_used;                   /* slots; the others are not claimed */
    _Atomic int n_active;                 /* workers that may claim; set under lock */
    _Alignas(64) stk_ring_config config;
    int row_bits;
    stk_slot *slot;
    int64_t last_woken_ns, i_last_woken; /* when the consumer last slept, and for which batch; its own */
    bool *released;                      /* by slot, while an earlier batch is still held; the consumer's */
    stk_mutex lock;
    stk_cond work_cond, ready_cond, park_cond;
    bool has_lock, has_work_cond, has_ready_cond, has_park_cond;
    int n_workers;     /* guarded by lock */
    stk_status status; /* of the row at limit; guarded by lock */
    char error[1024];  /* guarded by lock */
};

size_t stk_ring_slot_bytes(const stk_ring_config *config)
{
    size_t bytes = 0;
    for (int i = 0; i < config->n_fields; i++)
        bytes += stk_round_up(config->field_bytes[i], ALIGNMENT);
    return bytes ? bytes : ALIGNMENT;
}

stk_slot *stk_ring_slot(stk_ring *ring, int64_t i_batch)
{
    return &ring->slot[i_batch % ring->config.n_slots];
}

int64_t stk_ring_count(const stk_ring *ring, int64_t i_batch)
{
    if (i_batch == atomic_load_explicit(&ring->end, memory_order_relaxed)) return atomic_load(&ring->n_last_rows);
    return ring->config.count(ring->config.share, i_batch);
}

/* As it was before the samples ended. */
static int64_t planned_count(const stk_ring *ring, int64_t i_batch)
{
    return ring->config.count(ring->config.share, i_batch);
}

/* What n_rows_left starts from. */
static int64_t count_left(const stk_ring *ring, int64_t i_batch)
{
    return planned_count(ring, i_batch) + (ring->config.complete != NULL);
}

/* --- memory --- */

void *stk_ring_memory_get(const stk_ring_config *config)
{
    size_t bytes = stk_ring_slot_bytes(config);
    if (config->alloc) return config->alloc(config->alloc_user, bytes);
    bool huge = bytes >= 2 * (size_t)HUGE_PAGE;
    void *p = stk_pages_get(bytes, huge ? HUGE_PAGE : ALIGNMENT);
    /* Fewer page faults and table walks; being refused costs speed only. */
    if (p && huge) madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

void stk_ring_memory_free(const stk_ring_config *config, void *memory)
{
    size_t bytes = stk_ring_slot_bytes(config);
    if (!config->alloc) stk_pages_free(memory, bytes);
    if (memory && config->alloc && config->free) config->free(config->alloc_user, memory, bytes);
}

static void place_fields(const stk_ring_config *config, stk_slot *slot, void *memory)
{
    unsigned char *p = memory;
    slot->memory = memory;
    for (int f = 0; f < config->n_fields; f++) {
        slot->field[f] = p;
        p += stk_round_up(config->field_bytes[f], ALIGNMENT);
    }
}

void stk_ring_swap_memory(stk_ring *ring, int64_t i_batch, void **memory)
{
    stk_slot *slot = stk_ring_slot(ring, i_batch);
    void *before = slot->memory;
    place_fields(&ring->config, slot, *memory);
    *memory = before;
}

/* A slot over the memory of the first. */
static stk_status share_slot(stk_ring *ring, int i)
{
    const stk_ring_config *config = &ring->config;
    stk_slot *slot = &ring->slot[i];
    for (int f = 0; f < config->n_fields; f++) {
        slot->field[f] = ring->slot[0].field[f];
        atomic_init(&slot->row_bytes[f], config->row_bytes[f]);
    }
    atomic_init(&slot->n_rows_left, count_left(ring, i));
    return STK_OK;
}

static stk_status make_slot(stk_ring *ring, int i)
{
    const stk_ring_config *config = &ring->config;
    size_t bytes = stk_ring_slot_bytes(config);
    stk_slot *slot = &ring->slot[i];
    if (config->one_memory && i > 0) return share_slot(ring, i);
    STK_RETURN_IF_ERROR(stk_memory_charge_lasting(config->memory, bytes));
    slot->charged = bytes;
    slot->memory = stk_ring_memory_get(config);
    if (!slot->memory)
        return stk_fail(STK_NO_MEMORY, "cannot allocate batch slot %d of %d: %zu bytes each", i + 1, config->n_slots,
                        bytes);
    if ((uintptr_t)slot->memory % ALIGNMENT)
        return stk_fail(STK_INVALID, "'alloc' returned memory that is not aligned to %d bytes", ALIGNMENT);
    place_fields(config, slot, slot->memory);
    for (int f = 0; f < config->n_fields; f++)
        atomic_init(&slot->row_bytes[f], config->row_bytes[f]);
    atomic_init(&slot->n_rows_left, count_left(ring, i));
    return STK_OK;
}

stk_status stk_ring_new(const stk_ring_config *config, stk_ring **out)
{
    stk_status status = STK_OK;
    size_t slots_bytes = (size_t)config->n_slots * sizeof(stk_slot);
    stk_ring *ring = aligned_alloc(64, stk_round_up(sizeof(*ring), 64));
    if (!ring) return stk_fail_memory(sizeof(*ring));
    memset(ring, 0, sizeof(*ring));
    ring->config = *config;
    while (ring->row_bits < 32 && INT64_C(1) << ring->row_bits < config->n_rows)
        ring->row_bits++;
    atomic_init(&ring->limit, UINT64_MAX);
    atomic_init(&ring->wanted, -1);
    atomic_init(&ring->end, INT64_MAX);
    STK_TRY(stk_mutex_init(&ring->lock));
    ring->has_lock = true;
    STK_TRY(stk_cond_init(&ring->work_cond));
    ring->has_work_cond = true;
    STK_TRY(stk_cond_init(&ring->ready_cond));
    ring->has_ready_cond = true;
    STK_TRY(stk_cond_init(&ring->park_cond));
    ring->has_park_cond = true;
    atomic_init(&ring->n_used, config->n_slots);
    atomic_init(&ring->n_active, INT_MAX);
    ring->released = calloc((size_t)config->n_slots, sizeof(*ring->released));
    ring->slot = aligned_alloc(64, slots_bytes);
    if (ring->slot) memset(ring->slot, 0, slots_bytes);
    if (!ring->slot || !ring->released) STK_TRY(stk_fail_memory(slots_bytes));
    for (int i = 0; i < config->n_slots; i++)
        STK_TRY(make_slot(ring, i));
    *out = ring;
    ring = NULL;
done:
    stk_ring_free(ring);
    return status;
}

void stk_ring_free(stk_ring *ring)
{
    if (!ring) return;
    const stk_ring_config *config = &ring->config;
    for (int i = 0; ring->slot && i < config->n_slots; i++) {
        stk_ring_memory_free(config, ring->slot[i].memory);
        stk_memory_release(config->memory, ring->slot[i].charged);
    }
    free(ring->slot);
    free(ring->released);
    if (ring->has_park_cond) stk_cond_destroy(&ring->park_cond);
    if (ring->has_ready_cond) stk_cond_destroy(&ring->ready_cond);
    if (ring->has_work_cond) stk_cond_destroy(&ring->work_cond);
    if (ring->has_lock) stk_mutex_destroy(&ring->lock);
    free(ring);
}

/* --- workers --- */

void stk_ring_enter(stk_ring *ring)
{
    stk_mutex_lock(&ring->lock);
    ring->n_workers++;
    stk_mutex_unlock(&ring->lock);
}

void stk_ring_leave(stk_ring *ring)
{
    stk_mutex_lock(&ring->lock);
    if (--ring->n_workers == 0) stk_cond_signal(&ring->ready_cond);
    stk_mutex_unlock(&ring->lock);
}

void stk_ring_set_use(stk_ring *ring, int n_slots, int n_active)
{
    stk_mutex_lock(&ring->lock);
    atomic_store(&ring->n_used, n_slots);
    atomic_store(&ring->n_active, n_active);
    stk_cond_broadcast(&ring->park_cond);
    stk_cond_broadcast(&ring->work_cond);
    stk_mutex_unlock(&ring->lock);
}

void stk_ring_take_turn(stk_ring *ring, int i_worker)
{
    if (i_worker < atomic_load_explicit(&ring->n_active, memory_order_relaxed)) return;
    stk_mutex_lock(&ring->lock);
    while (i_worker >= atomic_load(&ring->n_active) && atomic_load(&ring->limit) == UINT64_MAX &&
           atomic_load(&ring->end) == INT64_MAX)
        stk_cond_wait(&ring->park_cond, &ring->lock);
    stk_mutex_unlock(&ring->lock);
}

int stk_ring_count_ready(stk_ring *ring, int64_t i_batch)
{
    int64_t end = (int64_t)(atomic_load(&ring->claim) >> ring->row_bits);
    int n = 0;
    while (i_batch + n < end &&
           atomic_load_explicit(&stk_ring_slot(ring, i_batch + n)->n_rows_left, memory_order_relaxed) == 0)
        n++;
    return n;
}

typedef enum claim_result { CLAIMED, FULL, ENDED } claim_result;

static claim_result try_claim(stk_ring *ring, int64_t n_max, int64_t end, stk_claim *out)
{
    uint64_t word = atomic_load(&ring->claim);
    for (;;) {
        int64_t i_batch = (int64_t)(word >> ring->row_bits);
        int64_t from = (int64_t)(word & ((UINT64_C(1) << ring->row_bits) - 1));
        if (i_batch >= ring->config.n_total || i_batch >= atomic_load(&ring->end)) return ENDED;
        if (atomic_load(&ring->limit) != UINT64_MAX) return ENDED;
        if (i_batch >= end || i_batch >= atomic_load(&ring->n_freed) + atomic_load(&ring->n_used)) return FULL;
        int64_t count = planned_count(ring, i_batch), to = from + n_max < count ? from + n_max : count;
        uint64_t next =
            to < count ? (uint64_t)i_batch << ring->row_bits | (uint64_t)to : ((uint64_t)i_batch + 1) << ring->row_bits;
        if (!atomic_compare_exchange_weak(&ring->claim, &word, next)) continue;
        *out = (stk_claim){.i_batch = i_batch, .from = from, .to = to, .slot = stk_ring_slot(ring, i_batch)};
        return CLAIMED;
    }
}

bool stk_ring_claim(stk_ring *ring, int64_t n_max, stk_claim *out)
{
    claim_result result = try_claim(ring, n_max, INT64_MAX, out);
    if (result != FULL) return result == CLAIMED;
    stk_mutex_lock(&ring->lock);
    atomic_fetch_add(&ring->n_sleeping, 1);
    while ((result = try_claim(ring, n_max, INT64_MAX, out)) == FULL)
        stk_cond_wait(&ring->work_cond, &ring->lock);
    atomic_fetch_sub(&ring->n_sleeping, 1);
    stk_mutex_unlock(&ring->lock);
    return result == CLAIMED;
}

bool stk_ring_try_claim(stk_ring *ring, int64_t n_max, int64_t end, stk_claim *out)
{
    return try_claim(ring, n_max, end, out) == CLAIMED;
}

bool stk_ring_needs(const stk_ring *ring, int64_t i_batch, int64_t row)
{
    uint64_t position = (uint64_t)i_batch << ring->row_bits | (uint64_t)row;
    return position < atomic_load_explicit(&ring->limit, memory_order_relaxed);
}

static void clear_rows(const stk_ring_config *config, stk_slot *slot, int64_t from)
{
    for (int f = 0; f < config->n_fields; f++) {
        size_t row_bytes = atomic_load_explicit(&slot->row_bytes[f], memory_order_relaxed);
        memset(slot->field[f] + row_bytes * (size_t)from, 0, row_bytes * (size_t)(config->n_rows - from));
    }
}

void stk_ring_finish(stk_ring *ring, const stk_claim *claim)
{
    const stk_ring_config *config = &ring->config;
    stk_slot *slot = claim->slot;
    int64_t n = claim->to - claim->from;
    if (!config->exact && claim->to < config->n_rows && claim->to == planned_count(ring, claim->i_batch))
        clear_rows(config, slot, claim->to);
    int64_t n_left = atomic_fetch_sub(&slot->n_rows_left, n) - n;
    if (config->complete && n_left == 1) {
        config->complete(config->complete_user, claim->i_batch, slot);
        n_left = atomic_fetch_sub(&slot->n_rows_left, 1) - 1;
    }
    if (n_left != 0 || atomic_load(&ring->wanted) != claim->i_batch) return;
    stk_mutex_lock(&ring->lock);
    stk_cond_signal(&ring->ready_cond);
    stk_mutex_unlock(&ring->lock);
}

void stk_ring_end(stk_ring *ring, const stk_claim *claim, bool drop)
{
    stk_claim rest = *claim;
    rest.to = planned_count(ring, claim->i_batch);
    int64_t n_rows = drop ? 0 : claim->from;
    stk_mutex_lock(&ring->lock);
    atomic_store(&ring->n_last_rows, n_rows);
    atomic_store(&ring->end, claim->i_batch);
    stk_cond_broadcast(&ring->work_cond);
    stk_cond_broadcast(&ring->park_cond);
    stk_mutex_unlock(&ring->lock);
    if (n_rows == 0) return;
    clear_rows(&ring->config, claim->slot, n_rows);
    stk_ring_finish(ring, &rest);
}

bool stk_ring_has_ended(stk_ring *ring, int64_t i_batch)
{
    int64_t end = atomic_load(&ring->end);
    bool is_past = i_batch > end || (i_batch == end && atomic_load(&ring->n_last_rows) == 0);
    return is_past && atomic_load(&ring->limit) == UINT64_MAX;
}

void stk_ring_fail(stk_ring *ring, int64_t i_batch, int64_t row, stk_status status)
{
    uint64_t position = (uint64_t)i_batch << ring->row_bits | (uint64_t)row;
    stk_mutex_lock(&ring->lock);
    if (position < atomic_load(&ring->limit)) {
        atomic_store(&ring->limit, position);
        ring->status = status;
        snprintf(ring->error, sizeof(ring->error), "%s", stk_error_text());
        /* Sleepers have nothing left to claim. */
        stk_cond_broadcast(&ring->work_cond);
        stk_cond_broadcast(&ring->park_cond);
    }
    stk_mutex_unlock(&ring->lock);
}

/* --- the consumer --- */

/* Wakes the sleeping workers when at least n_free slots can be claimed. */
static void wake_workers(stk_ring *ring, int64_t n_free)
{
    if (atomic_load(&ring->n_sleeping) == 0) return;
    int64_t i_claim = (int64_t)(atomic_load(&ring->claim) >> ring->row_bits);
    if (atomic_load(&ring->n_freed) + atomic_load(&ring->n_used) - i_claim < n_free) return;
    stk_mutex_lock(&ring->lock);
    stk_cond_broadcast(&ring->work_cond);
    stk_mutex_unlock(&ring->lock);
}

/* A consumer that starves on tiny batches would be woken for each, at more than a batch's worth of time. It sleeps for
 * the last of as many batches as come in NAP_NS instead; for ordinary batches that is one. */
static int64_t batches_to_sleep_for(const stk_ring *ring, int64_t i_batch)
{
    int64_t n_since = i_batch - ring->i_last_woken, n_most = atomic_load(&ring->n_used) / 2;
    if (ring->last_woken_ns == 0 || n_since < 1) return 1;
    int64_t ns_each = (stk_clock_ns() - ring->last_woken_ns) / n_since;
    int64_t n = ns_each > 0 ? NAP_NS / ns_each : 1, n_left = ring->config.n_total - i_batch;
    /* Batches that lie in held slots cannot come. */
    int64_t n_possible = atomic_load(&ring->n_freed) + atomic_load(&ring->n_used) - i_batch;
    n = n > n_most ? n_most : n;
    n = n > n_left ? n_left : n;
    n = n > n_possible ? n_possible : n;
    return n < 1 ? 1 : n;
}

/* Sleeps until that batch is ready or no worker is left, or the deadline (0: none) has passed: then it is false. The
 * lock is held. */
static bool sleep_for_batch(stk_ring *ring, int64_t i_batch, int64_t deadline_ns)
{
    stk_slot *slot = stk_ring_slot(ring, i_batch);
    bool is_late = false;
    atomic_store(&ring->wanted, i_batch);
    while (atomic_load(&slot->n_rows_left) != 0 && ring->n_workers > 0 && !is_late) {
        int64_t left_ns = deadline_ns - stk_clock_ns();
        if (deadline_ns == 0)
            stk_cond_wait(&ring->ready_cond, &ring->lock);
        else if (left_ns > 0)
            (void)stk_cond_wait_ms(&ring->ready_cond, &ring->lock, (int)(left_ns / 1000000) + 1);
        else
            is_late = true;
    }
    atomic_store(&ring->wanted, -1);
    return !is_late;
}

bool stk_ring_has(stk_ring *ring, int64_t i_batch)
{
    /* Until then the slot belongs to an earlier batch. */
    if (i_batch >= atomic_load(&ring->n_freed) + ring->config.n_slots) return false;
    return atomic_load(&stk_ring_slot(ring, i_batch)->n_rows_left) == 0;
}

/* Until the batch is ready or will never be, but no longer than timeout_ms (below 0: any time): then it is false. */
static bool wait_for_batch(stk_ring *ring, int64_t i_batch, int timeout_ms, int64_t *wait_ns)
{
    int64_t n_freed = atomic_load(&ring->n_freed);
    /* Where the consumer holds batches, as many slots as are in use may all be its own. */
    if (i_batch >= n_freed + atomic_load(&ring->n_used)) atomic_store(&ring->n_used, (int)(i_batch - n_freed) + 1);
    int64_t start_ns = stk_clock_ns(), n_ahead = batches_to_sleep_for(ring, i_batch);
    int64_t deadline_ns = timeout_ms < 0 ? 0 : start_ns + (int64_t)timeout_ms * 1000000;
    wake_workers(ring, 1);
    stk_mutex_lock(&ring->lock);
    if (n_ahead > 1) (void)sleep_for_batch(ring, i_batch + n_ahead - 1, deadline_ns);
    bool is_decided = sleep_for_batch(ring, i_batch, deadline_ns);
    stk_mutex_unlock(&ring->lock);
    ring->last_woken_ns = stk_clock_ns();
    ring->i_last_woken = i_batch;
    *wait_ns += ring->last_woken_ns - start_ns;
    return is_decided;
}

/* The slot still belongs to an earlier batch, which the consumer itself holds. */
static bool is_held(stk_ring *ring, int64_t i_batch)
{
    return i_batch >= atomic_load(&ring->n_freed) + ring->config.n_slots;
}

bool stk_ring_wait_ms(stk_ring *ring, int64_t i_batch, int timeout_ms, int64_t *wait_ns)
{
    if (is_held(ring, i_batch) || stk_ring_has(ring, i_batch)) return true;
    return wait_for_batch(ring, i_batch, timeout_ms, wait_ns);
}

stk_status stk_ring_wait(stk_ring *ring, int64_t i_batch, int64_t *wait_ns)
{
    if (is_held(ring, i_batch))
        return stk_fail(STK_BUSY, "batch %lld is still held, and its slot is needed",
                        (long long)atomic_load(&ring->n_freed));
    if (stk_ring_has(ring, i_batch)) return STK_OK;
    (void)wait_for_batch(ring, i_batch, -1, wait_ns);
    if (stk_ring_has(ring, i_batch)) return STK_OK;
    /* With the last worker gone the batch is complete, or it holds the first failing row. */
    stk_mutex_lock(&ring->lock);
    stk_status status = ring->status == STK_OK ? stk_fail(STK_INTERRUPTED, "the loader was stopped")
                                               : stk_fail(ring->status, "%s", ring->error);
    stk_mutex_unlock(&ring->lock);
    return status;
}

void stk_ring_release(stk_ring *ring, int64_t i_batch)
{
    int64_t n_freed = atomic_load(&ring->n_freed), n_slots = ring->config.n_slots;
    ring->released[i_batch % n_slots] = true;
    for (; ring->released[n_freed % n_slots]; n_freed++) {
        ring->released[n_freed % n_slots] = false;
        atomic_store(&stk_ring_slot(ring, n_freed)->n_rows_left, count_left(ring, n_freed + n_slots));
    }
    atomic_store(&ring->n_freed, n_freed);
    int64_t n_used = atomic_load(&ring->n_used);
    wake_workers(ring, n_used / 2 > 0 ? n_used / 2 : 1);
}

void stk_ring_stop(stk_ring *ring)
{
    stk_mutex_lock(&ring->lock);
    atomic_store(&ring->limit, 0);
    stk_cond_broadcast(&ring->work_cond);
    stk_cond_broadcast(&ring->park_cond);
    stk_mutex_unlock(&ring->lock);
}

/* See base/memory.h and stoker/memory.h. */
#include "base/memory.h"
#include "base/align.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain_number.h"

struct stk_memory {
    _Atomic size_t limit, used, peak;
    bool is_automatic;   /* nobody gave the limit */
    _Atomic int n_users; /* loaders that it must outlive, whoever frees it first */
    _Atomic int64_t n_turns;
    stk_mutex turn;           /* held for the length of a turn */
    stk_memory_tenant *first; /* guarded by turn */
};

static _Thread_local stk_memory *of_thread;

enum { LEAST_AUTOMATIC = 64 << 20 };

/* --- accounts --- */

stk_status stk_memory_new(size_t limit_bytes, stk_memory **out)
{
    STK_NEED(out);
    *out = NULL;
    stk_memory *memory = calloc(1, sizeof(*memory));
    if (!memory) return stk_fail_memory(sizeof(*memory));
    stk_status status = stk_mutex_init(&memory->turn);
    if (status != STK_OK) {
        free(memory);
        return status;
    }
    memory->is_automatic = limit_bytes == 0;
    if (memory->is_automatic) {
        limit_bytes = stk_machine_memory(true) / 4;
        if (limit_bytes < LEAST_AUTOMATIC) limit_bytes = LEAST_AUTOMATIC;
    }
    atomic_init(&memory->limit, limit_bytes);
    *out = memory;
    return STK_OK;
}

stk_status stk_memory_new_beside(size_t limit_bytes, stk_memory **out)
{
    STK_RETURN_IF_ERROR(stk_memory_new(limit_bytes ? limit_bytes : 1, out));
    (*out)->is_automatic = true;
    return STK_OK;
}

void stk_memory_keep(stk_memory *memory)
{
    atomic_fetch_add(&memory->n_users, 1);
}

void stk_memory_free(stk_memory *memory)
{
    if (!memory || atomic_fetch_sub(&memory->n_users, 1) > 0) return;
    stk_mutex_destroy(&memory->turn);
    free(memory);
}

void stk_memory_get_stats(const stk_memory *memory, stk_memory_stats *out)
{
    if (!out) return;
    if (!memory) {
        *out = (stk_memory_stats){0};
        return;
    }
    *out = (stk_memory_stats){.limit_bytes = atomic_load(&memory->limit),
                              .used_bytes = atomic_load(&memory->used),
                              .peak_bytes = atomic_load(&memory->peak),
                              .n_turns = atomic_load(&memory->n_turns)};
}

static void note_peak(stk_memory *memory, size_t used)
{
    size_t peak = atomic_load(&memory->peak);
    while (used > peak && !atomic_compare_exchange_weak(&memory->peak, &peak, used)) {
    }
}

static stk_status fail_limit(size_t bytes, size_t used, size_t limit)
{
    char more[STK_PLAIN_TEXT], now[STK_PLAIN_TEXT], most[STK_PLAIN_TEXT];
    return stk_fail(
        STK_NO_MEMORY,
        "%s more do not fit into the pipeline's memory limit of %s, of which %s are in use: raise the limit%s",
        stk_plain_bytes((double)bytes, more), stk_plain_bytes((double)limit, most), stk_plain_bytes((double)used, now),
        limit < 1 << 20 ? " (sizes have units, as in 100MiB)" : "");
}

stk_status stk_memory_charge(stk_memory *memory, size_t bytes)
{
    if (!memory) return STK_OK;
    size_t limit = atomic_load(&memory->limit), used = atomic_load(&memory->used);
    do {
        if (used > limit || bytes > limit - used) return fail_limit(bytes, used, limit);
    } while (!atomic_compare_exchange_weak(&memory->used, &used, used + bytes));
    note_peak(memory, used + bytes);
    return STK_OK;
}

void stk_memory_release(stk_memory *memory, size_t bytes)
{
    if (memory) atomic_fetch_sub(&memory->used, bytes);
}

stk_status stk_memory_charge_held(stk_memory *memory, size_t bytes)
{
    if (memory && memory->is_automatic) atomic_fetch_add(&memory->limit, bytes);
    return stk_memory_charge(memory, bytes);
}

void stk_memory_release_held(stk_memory *memory, size_t bytes)
{
    stk_memory_release(memory, bytes);
    if (memory && memory->is_automatic) atomic_fetch_sub(&memory->limit, bytes);
}

stk_status stk_memory_hold(size_t bytes)
{
    return stk_memory_charge_held(of_thread, bytes);
}

void stk_memory_let_go(size_t bytes)
{
    stk_memory_release_held(of_thread, bytes);
}

stk_status stk_memory_charge_lasting(stk_memory *memory, size_t bytes)
{
    if (stk_memory_charge(memory, bytes) == STK_OK) return STK_OK;
    stk_memory_begin_turn(memory);
    stk_status status = stk_memory_charge(memory, bytes);
    stk_memory_end_turn(memory);
    return status;
}

size_t stk_memory_left(const stk_memory *memory)
{
    if (!memory) return SIZE_MAX;
    size_t limit = atomic_load(&memory->limit), used = atomic_load(&memory->used);
    return used < limit ? limit - used : 0;
}

stk_memory *stk_memory_use(stk_memory *memory)
{
    stk_memory *before = of_thread;
    of_thread = memory;
    return before;
}

stk_memory *stk_memory_in_use(void)
{
    return of_thread;
}

stk_status stk_memory_enter_own(size_t limit_bytes, stk_memory **own)
{
    *own = NULL;
    if (of_thread) return STK_OK;
    STK_RETURN_IF_ERROR(stk_memory_new(limit_bytes, own));
    of_thread = *own;
    return STK_OK;
}

void stk_memory_leave_own(stk_memory *own)
{
    if (!own) return;
    of_thread = NULL;
    stk_memory_free(own);
}

/* --- pages --- */

/* Sanitizers see only what comes from the C library. */
#if defined(__SANITIZE_ADDRESS__)
enum { LEAST_MAPPED = 1 << 30 };
#else
enum { LEAST_MAPPED = 256 << 10 };
#endif

void *stk_pages_get(size_t bytes, size_t alignment)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (bytes < LEAST_MAPPED) return aligned_alloc(alignment, stk_round_up(bytes ? bytes : 1, alignment));
    bytes = stk_round_up(bytes, page);
    size_t more = alignment > page ? alignment - page : 0;
    if (bytes > SIZE_MAX - more) return NULL;
    unsigned char *p = mmap(NULL, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t before = (alignment - (size_t)((uintptr_t)p % alignment)) % alignment;
    if (more && before) munmap(p, before);
    if (more > before) munmap(p + before + bytes, more - before);
    return p + before;
}

void stk_pages_free(void *p, size_t bytes)
{
    if (!p) return;
    if (bytes < LEAST_MAPPED)
        free(p);
    else
        munmap(p, stk_round_up(bytes, (size_t)sysconf(_SC_PAGESIZE)));
}

void *stk_array_get(size_t bytes)
{
    enum { HUGE_PAGE = 2 << 20 };
    if (bytes < 2 * (size_t)HUGE_PAGE) return malloc(bytes ? bytes : 1);
    if (bytes > SIZE_MAX - HUGE_PAGE) return NULL;
    bytes = stk_round_up(bytes, HUGE_PAGE);
    void *p = aligned_alloc(HUGE_PAGE, bytes);
    /* Being refused costs speed only. */
    if (p) (void)madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

void stk_memory_give_back(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

/* --- blocks --- */

static bool fill_block(stk_block *block, size_t bytes, stk_memory *memory)
{
    if (stk_memory_charge(memory, bytes) != STK_OK) return false;
    void *data = stk_pages_get(bytes, 64);
    if (!data) {
        stk_memory_release(memory, bytes);
        stk_fail_memory(bytes);
        return false;
    }
    *block = (stk_block){.data = data, .n_bytes = bytes, .memory = memory};
    return true;
}

void *stk_block_get(stk_block *block, size_t bytes)
{
    if (bytes <= block->n_bytes && block->data) return block->data;
    stk_block_free(block);
    if (bytes > SIZE_MAX / 2) {
        stk_fail_memory(bytes);
        return NULL;
    }
    /* Room to grow, where there is room. */
    if (!fill_block(block, stk_round_up(bytes + bytes / 4, 64) + 64, of_thread))
        (void)fill_block(block, stk_round_up(bytes ? bytes : 1, 64), of_thread);
    return block->data;
}

void stk_block_free(stk_block *block)
{
    stk_pages_free(block->data, block->n_bytes);
    stk_memory_release(block->memory, block->n_bytes);
    *block = (stk_block){0};
}

/* --- tenants --- */

stk_status stk_memory_join(stk_memory *memory, stk_memory_tenant *tenant)
{
    STK_RETURN_IF_ERROR(stk_mutex_init(&tenant->lock));
    stk_mutex_lock(&memory->turn);
    tenant->next = memory->first;
    memory->first = tenant;
    stk_mutex_unlock(&memory->turn);
    return STK_OK;
}

void stk_memory_leave(stk_memory *memory, stk_memory_tenant *tenant)
{
    stk_mutex_lock(&memory->turn);
    stk_memory_tenant **at = &memory->first;
    while (*at && *at != tenant)
        at = &(*at)->next;
    if (*at) *at = tenant->next;
    stk_mutex_unlock(&memory->turn);
    stk_mutex_destroy(&tenant->lock);
}

void stk_memory_begin_turn(stk_memory *memory)
{
    stk_mutex_lock(&memory->turn);
    for (stk_memory_tenant *tenant = memory->first; tenant; tenant = tenant->next) {
        stk_mutex_lock(&tenant->lock);
        tenant->trim(tenant->user);
    }
    atomic_fetch_add(&memory->n_turns, 1);
}

void stk_memory_end_turn(stk_memory *memory)
{
    for (stk_memory_tenant *tenant = memory->first; tenant; tenant = tenant->next)
        stk_mutex_unlock(&tenant->lock);
    stk_mutex_unlock(&memory->turn);
}

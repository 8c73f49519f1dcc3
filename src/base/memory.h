/* Charging buffers to an account, and blocks that are charged. The public side is stoker/memory.h.
 *
 * What a thread allocates as a block is charged to the account that it uses at that time (stk_memory_use), and goes
 * back to that account, whichever thread frees it.
 */
#ifndef STK_BASE_MEMORY_H
#define STK_BASE_MEMORY_H

#include "base/thread.h"
#include "stoker/memory.h"

/* --- accounts; a NULL account has no limit and counts nothing --- */

/* Until stk_memory_free is called once more, by whoever keeps it. */
void stk_memory_keep(stk_memory *memory);
/* STK_NO_MEMORY, with both figures, where that many bytes more do not fit. */
stk_status stk_memory_charge(stk_memory *memory, size_t bytes);
void stk_memory_release(stk_memory *memory, size_t bytes);
/* For what stays until the end: where it does not fit, tenants give back what they keep. The caller holds no tenant's
 * lock. */
stk_status stk_memory_charge_lasting(stk_memory *memory, size_t bytes);
/* For what was there before the account. An account without a limit of the caller's grows by it. */
stk_status stk_memory_charge_held(stk_memory *memory, size_t bytes);
void stk_memory_release_held(stk_memory *memory, size_t bytes);
/* For what a source keeps that is being opened: in this thread's account until that ends, and later in each loader's,
 * by what the source says that it holds. Before it is read or allocated. */
stk_status stk_memory_hold(size_t bytes);
/* As far as the list of what such a source has turns out shorter. */
void stk_memory_let_go(size_t bytes);
/* What still fits. */
size_t stk_memory_left(const stk_memory *memory);

/* The account of this thread from now on; returns the one before. Threads start with NULL. */
stk_memory *stk_memory_use(stk_memory *memory);
stk_memory *stk_memory_in_use(void);
/* For reading outside loaders: an account of its own for this thread, of limit_bytes as in stk_memory_new, where it has
 * none; else *own is NULL and nothing changes. Ends with stk_memory_leave_own, before which its blocks are freed. */
stk_status stk_memory_enter_own(size_t limit_bytes, stk_memory **own);
void stk_memory_leave_own(stk_memory *own);
/* An account whose limit grows by what is charged as held, as one without a limit of the caller's does. */
stk_status stk_memory_new_beside(size_t limit_bytes, stk_memory **out);

/* --- blocks --- */

/* Starts zeroed. */
typedef struct stk_block {
    void *data;
    size_t n_bytes;
    stk_memory *memory; /* that it is charged to */
} stk_block;

/* At least N bytes, 64-byte aligned; old content is lost when it has to grow. NULL when there is no memory or the
 * account has no room: then the block is empty, and the error is set. */
void *stk_block_get(stk_block *block, size_t bytes);
void stk_block_free(stk_block *block);

/* Memory that goes back to the system when it is freed, if it is large: what the C library keeps of such would not be
 * in any account. alignment: a power of two. Not charged. */
void *stk_pages_get(size_t bytes, size_t alignment);
void stk_pages_free(void *p, size_t bytes);
/* For arrays that are read at random: large ones come in huge pages, where the system has them, which saves walks
 * through the page tables. Free with free(). NULL when there is no memory. Not charged. */
void *stk_array_get(size_t bytes);

/* After much was freed at once: what the C library keeps of it goes back to the system. Takes some milliseconds. */
void stk_memory_give_back(void);

/* --- tenants: those who keep blocks only to be faster --- */

typedef struct stk_memory_tenant {
    stk_mutex lock;           /* held by the tenant while it uses its blocks */
    void (*trim)(void *user); /* frees all of them. The lock is held, by whichever thread */
    void *user;
    struct stk_memory_tenant *next;
} stk_memory_tenant;

stk_status stk_memory_join(stk_memory *memory, stk_memory_tenant *tenant);
/* Without the lock. */
void stk_memory_leave(stk_memory *memory, stk_memory_tenant *tenant);
/* Waits until every tenant has finished what it does, trims all of them, and keeps them waiting: what fits into the
 * limit at all now fits. One turn at a time; the caller holds no tenant's lock. */
void stk_memory_begin_turn(stk_memory *memory);
void stk_memory_end_turn(stk_memory *memory);

/* --- the machine --- */

/* What the machine has, or this process's control groups (version 1 or 2) allow where that is less; available: what is
 * free of it now, caches of files counting as free. 0: not known. */
size_t stk_machine_memory(bool available);
/* The same for control groups alone; SIZE_MAX: they set no limit. groups: the text of /proc/self/cgroup; root: where
 * the file systems are mounted, /sys/fs/cgroup. */
size_t stk_cgroup_memory(const char *groups, const char *root, bool available);

#endif

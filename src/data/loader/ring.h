/* The ring of batch slots: who writes which rows, and when a batch is ready. It knows no data set and no stages.
 *
 * Batches are numbered 0, 1, 2, ... from where the loader starts; batch g lies in slot g mod n_slots. Workers claim
 * rows in order, so that everything before a claimed row is claimed too: hence the first failing row in order is known
 * as soon as the workers have ended, whoever was faster.
 *
 *     batch g: [ rows done | rows claimed | rows free ]    claim: one 64-bit word (g, row), moved on by
 *     slot     g mod n_slots                               compare-and-swap; sleeping only when all are claimed
 *
 * Threads: claim, finish, fail and leave are the workers'; wait and release the consumer's; the rest is for one thread.
 */
#ifndef STK_DATA_LOADER_RING_H
#define STK_DATA_LOADER_RING_H

#include <stdatomic.h>

#include "data/source/source.h"

/* A padded field has one more for its lengths. */
enum { STK_MOST_SLOT_FIELDS = 2 * STK_MAX_FIELDS };

typedef struct stk_slot {
    _Alignas(64) _Atomic int64_t n_rows_left;   /* rows not yet written, and one more for `complete`; 0: ready */
    unsigned char *field[STK_MOST_SLOT_FIELDS]; /* [n_rows, row_bytes], 64-byte aligned */
    /* Of this batch: the config's, or what each worker with a claim sets, to the same. */
    _Atomic size_t row_bytes[STK_MOST_SLOT_FIELDS];
    _Atomic int64_t i_measured; /* one more than the batch whose row_bytes these are; the workers' */
    void *memory;
    size_t charged;
} stk_slot;

typedef struct stk_ring_config {
    int n_slots, n_fields;
    size_t row_bytes[STK_MOST_SLOT_FIELDS];   /* at most */
    size_t field_bytes[STK_MOST_SLOT_FIELDS]; /* of all rows of a batch, at most */
    int64_t n_rows;                           /* of a batch, at most */
    bool exact;                               /* a batch has no rows but its samples */
    bool one_memory; /* all slots are the same memory: every batch is the first, which alone is written */
    int64_t n_total; /* batches until the end; INT64_MAX: none */
    int64_t (*count)(const void *share, int64_t i_batch); /* samples in a batch: 1 to n_rows. Pure */
    const void *share;
    /* Optional: called once for each batch whose rows are all written, before it is ready, by the worker that wrote the
     * last of them. */
    void (*complete)(const void *complete_user, int64_t i_batch, stk_slot *slot);
    const void *complete_user;
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *p, size_t bytes);
    void *alloc_user;
    stk_memory *memory; /* that the slots are charged to; NULL: none */
} stk_ring_config;

typedef struct stk_claim {
    int64_t i_batch;  /* of the ring */
    int64_t from, to; /* rows */
    stk_slot *slot;
} stk_claim;

typedef struct stk_ring stk_ring;

/* Memory of one slot, as it is charged. */
size_t stk_ring_slot_bytes(const stk_ring_config *config);
/* That much, as slots have it; not charged. NULL when there is none. */
void *stk_ring_memory_get(const stk_ring_config *config);
void stk_ring_memory_free(const stk_ring_config *config, void *memory); /* accepts NULL */
/* Allocates the slots. Their pages are touched by the workers, as rows are written first. */
stk_status stk_ring_new(const stk_ring_config *config, stk_ring **out);
/* Accepts NULL. No worker may be in it any more. */
void stk_ring_free(stk_ring *ring);
stk_slot *stk_ring_slot(stk_ring *ring, int64_t i_batch);
/* Whether the batch is ready. */
bool stk_ring_has(stk_ring *ring, int64_t i_batch);
/* Samples in a batch. */
int64_t stk_ring_count(const stk_ring *ring, int64_t i_batch);

/* A worker is about to start; it ends with stk_ring_leave. */
void stk_ring_enter(stk_ring *ring);
void stk_ring_leave(stk_ring *ring);
/* How many slots are used, 2 to those that there are, and how many workers may claim, 1 and up; all, until this is
 * called. By the consumer. */
void stk_ring_set_use(stk_ring *ring, int n_slots, int n_active);
/* A worker, numbered from 0, asks before each claim, and sleeps while it may not. */
void stk_ring_take_turn(stk_ring *ring, int i_worker);
/* Batches that are ready, from i_batch on. */
int stk_ring_count_ready(stk_ring *ring, int64_t i_batch);
/* The next rows, at most n_max of one batch. Sleeps while all slots are taken. False: nothing is left to do. */
bool stk_ring_claim(stk_ring *ring, int64_t n_max, stk_claim *out);
/* The same without sleeping, and only rows of batches before `end`. */
bool stk_ring_try_claim(stk_ring *ring, int64_t n_max, int64_t end, stk_claim *out);
/* False when nobody will read that row any more: the ring was stopped, or an earlier row has failed. */
bool stk_ring_needs(const stk_ring *ring, int64_t i_batch, int64_t row);
/* All rows of the claim are written. The last one of a short batch zeroes what is past it. */
void stk_ring_finish(stk_ring *ring, const stk_claim *claim);
/* There are no samples from the claim's row on: nobody has claimed a later row, nor will. The batch is short, or with
 * `drop` left out, as it is where the row is its first. It fills the rest with zeros. */
void stk_ring_end(stk_ring *ring, const stk_claim *claim, bool drop);
/* Whether stk_ring_wait has failed because the samples ended before that batch. */
bool stk_ring_has_ended(stk_ring *ring, int64_t i_batch);
/* That row failed with status and this thread's error text. The first failing row in order wins. */
void stk_ring_fail(stk_ring *ring, int64_t i_batch, int64_t row, stk_status status);

/* Waits for batch i_batch; STK_BUSY when an unreleased batch is in its slot; otherwise the error of its first failing
 * row, with its text, when it cannot come. Adds to *wait_ns. */
stk_status stk_ring_wait(stk_ring *ring, int64_t i_batch, int64_t *wait_ns);
/* False: after timeout_ms stk_ring_wait would still sleep. */
bool stk_ring_wait_ms(stk_ring *ring, int64_t i_batch, int timeout_ms, int64_t *wait_ns);
/* Gives the slot of a batch that the consumer holds other memory; *memory becomes what it had. */
void stk_ring_swap_memory(stk_ring *ring, int64_t i_batch, void **memory);
/* The consumer is done with a batch; in any order. */
void stk_ring_release(stk_ring *ring, int64_t i_batch);
/* Workers leave as soon as they can. */
void stk_ring_stop(stk_ring *ring);

#endif

/* A worker: claims rows of the ring, reads their records and runs the stages on them, straight into the slot.
 *
 * Threads: a stk_worker is one thread's own; everything in stk_work is shared by all workers and read-only, but for the
 * ring and the skip list, which guard themselves.
 */
#ifndef STK_DATA_LOADER_WORKER_H
#define STK_DATA_LOADER_WORKER_H

#include "data/codec/jpeg_crop.h"
#include "data/dataset/dataset.h"
#include "data/loader/ahead.h"
#include "data/loader/ring.h"
#include "data/loader/sequence.h"
#include "data/loader/share.h"
#include "data/loader/skip_list.h"
#include "data/source/reader.h"

/* What all workers of a loader know. */
typedef struct stk_work {
    const stk_dataset *dataset;
    stk_ring *ring;
    stk_skip_list *skips;
    stk_memory *memory;                     /* that everything is charged to */
    stk_field_type want[STK_MAX_FIELDS];    /* of one sample */
    int n_slot_fields;                      /* those of the source, and lengths of padded ones */
    size_t row_bytes[STK_MOST_SLOT_FIELDS]; /* in a slot, at most */
    char probe_name[STK_RECORD_NAME_BYTES]; /* the record whose size the batch has; "" when the plan knew it */
    stk_row_cache *cache;                   /* NULL: none */
    const stk_chain *chain[STK_MAX_FIELDS]; /* that workers run: the data set's, or what a cache leaves of them */
    uint64_t seed;
    bool no_stage_times;
    stk_share share;
    bool repeats; /* all batches are the first of epoch 0, which lies in all slots */
    int n_workers;
    int64_t n_total;         /* batches until the end */
    _Atomic bool is_closing; /* what workers ask of servers is broken off */
    stk_ahead *ahead;
    stk_sequence *sequence; /* NULL: records are read by number */
} stk_work;

typedef struct stk_worker {
    const stk_work *work;
    int i_worker;
    stk_memory_tenant tenant; /* its lock is held while rows are made */
    bool is_tenant;
    stk_jpeg_reader *decoder; /* of its thread; NULL: the thread is not running */
    stk_reader reader;
    stk_order_cursor cursor, length_cursor; /* for rows to make, and for how long they are */
    stk_ahead_work ahead;
    stk_chain_work chain[STK_MAX_FIELDS];
    stk_row_cache_work cached;
    stk_sequence_sample sample;
    double row_ns;         /* what a row takes, averaged over the last claims */
    stk_counter work_ns;   /* at work in all */
    stk_counter n_records; /* read, failing ones included */
    stk_counter read_ns, n_read_timed;
} stk_worker;

/* Makes it a tenant of its account, before its thread starts. */
stk_status stk_worker_init(stk_worker *worker, const stk_work *work);
/* The thread's main function; arg is a stk_worker. */
void stk_worker_run(void *arg);
/* For a worker without a thread: has part in making the batches before `end`, until nothing of them is left to claim.
 */
void stk_worker_assist(stk_worker *worker, int64_t end);
/* Reads one record and writes all its fields to a row of the slot. */
stk_status stk_worker_make(stk_worker *worker, stk_order_place place, stk_slot *slot, int64_t row);
/* Frees what it keeps from record to record. */
void stk_worker_trim(stk_worker *worker);
/* Once its thread has ended. */
void stk_worker_free(stk_worker *worker);

#endif

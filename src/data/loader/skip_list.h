/* Which records were skipped. Workers are batches ahead of the consumer and find bad records in any order; a record
 * counts when the consumer gets its batch, in the order of the rows, so that count and list repeat exactly.
 *
 * Threads: add is the workers', collect the consumer's, and they may run at once; the fields below `kept` are for the
 * consumer.
 */
#ifndef STK_DATA_LOADER_SKIP_LIST_H
#define STK_DATA_LOADER_SKIP_LIST_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/thread.h"
#include "stoker/data/loader.h"

enum { STK_MAX_SKIPPED = 100 };

typedef struct stk_skip {
    int64_t i_batch, row, i_try; /* where it was met; i_try 0 is the record that the row was for */
    int64_t i_record;
    char *text; /* owned */
} stk_skip;

typedef struct stk_skip_list {
    stk_mutex lock;
    bool has_lock;
    stk_skip *pending; /* guarded by lock */
    size_t capacity;   /* guarded by lock */
    _Atomic size_t n_pending;
    stk_skip kept[STK_MAX_SKIPPED]; /* each record once */
    int n_kept;
    int64_t most;    /* different records; -1: any number */
    int64_t *record; /* [n_records], rising: the different ones */
    int64_t n_records;
    size_t record_capacity;
    int64_t *key; /* [n_keys], rising: of their texts, by which loaders of one run know a record that another has met */
    int64_t n_keys;
    size_t key_capacity;
    int64_t *row; /* [n_rows], rising: of the batch that was collected last, those whose own record was bad */
    int64_t n_rows;
    size_t row_capacity;
} stk_skip_list;

stk_status stk_skip_list_init(stk_skip_list *list, int64_t most);
void stk_skip_list_free(stk_skip_list *list);
/* Notes a bad record with this thread's error text. */
stk_status stk_skip_list_add(stk_skip_list *list, int64_t i_batch, int64_t row, int64_t i_try, int64_t i_record);
/* The consumer has got batch i_batch. STK_CORRUPT where there are now more bad records than may be; the batch is then
 * not to be used. */
stk_status stk_skip_list_collect(stk_skip_list *list, int64_t i_batch);
/* Of all that a loader skipped: its list's keys, [*n], rising. Borrowed until the next batch. */
const int64_t *stk_loader_skipped_keys(const stk_loader *loader, int64_t *n);

#endif

/* Telling the source which records come up, so that what lies on a disk or behind a network is on its way before a
 * worker asks for it. The order is known, hence so are the records; how far to look ahead is found out.
 *
 *   network   1024 records, fewer where the cache is small, and as long as the source takes them: it says when enough
 * is on its way disk      only while this thread's reads come from the disk and not from memory (ru_inblock tells): 4
 * records at first, doubled up to 32 while that lasts, and none again after 16 claims without such a read
 *
 * No record and no batch depends on it. Threads: any number of workers, each with a stk_ahead_work of its own.
 */
#ifndef STK_DATA_LOADER_AHEAD_H
#define STK_DATA_LOADER_AHEAD_H

#include <stdatomic.h>

#include "data/dataset/dataset.h"
#include "data/loader/ring.h"
#include "data/loader/share.h"

/* Shared by the workers of a loader. Starts zeroed. */
typedef struct stk_ahead {
    _Atomic int64_t next; /* row of all batches that nobody has looked at yet */
} stk_ahead;

/* One worker's. Starts zeroed. */
typedef struct stk_ahead_work {
    stk_order_cursor cursor;
    int64_t depth;  /* records */
    int n_warm;     /* claims since the last read from a disk */
    long n_inblock; /* of this thread until the last claim */
} stk_ahead_work;

/* Before the rows of the claim are made. n_total: batches until the end. */
void stk_ahead_look(stk_ahead *ahead, stk_ahead_work *work, const stk_dataset *dataset, const stk_share *share,
                    int64_t n_total, const stk_claim *claim);
void stk_ahead_trim(stk_ahead_work *work);

#endif

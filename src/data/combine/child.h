/* Samples of a whole data set, as its own order and stages give them: for sources that are made of data sets. Threads:
 * each has a stk_child_work of its own for each data set.
 */
#ifndef STK_DATA_COMBINE_CHILD_H
#define STK_DATA_COMBINE_CHILD_H

#include "data/dataset/dataset.h"
#include "data/source/reader.h"

/* Starts zeroed. */
typedef struct stk_child_work {
    stk_reader reader;
    stk_order_cursor cursor;
    stk_chain_work chain[STK_MAX_FIELDS];
    stk_scratch out[STK_MAX_FIELDS];
} stk_child_work;

/* The sample at a position of child number i, by the child's fields; it lives until the next. Errors name the record.
 */
stk_status stk_child_read(const stk_dataset *child, int64_t i, int64_t position, const stk_stage_key *outer,
                          stk_child_work *work, stk_item *item);
void stk_child_work_free(const stk_dataset *child, stk_child_work *work);
/* The name of that sample's record. */
void stk_child_name(const stk_dataset *child, int64_t position, uint64_t epoch, char *out, size_t out_bytes);

#endif

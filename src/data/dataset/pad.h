/* Padding: rows of different lengths in one batch. What is planned when the data set is batched, and what a worker does
 * with one row. Threads: read-only once planned.
 */
#ifndef STK_DATA_DATASET_PAD_H
#define STK_DATA_DATASET_PAD_H

#include "data/common/item.h"

/* Of one field. */
typedef struct stk_pad_plan {
    bool on;
    int i_length;         /* which field of a slot has the lengths */
    int64_t fixed;        /* T of every batch; 0: the longest of each */
    int64_t most;         /* longer samples are cut; INT64_MAX: none is */
    int64_t longest;      /* T is never more */
    size_t element_bytes; /* of one element, which is what lies behind the first side */
    size_t value_bytes;   /* of one number */
    unsigned char value[8];
    int32_t *lengths; /* by record, uncut; owned; NULL where fixed */
} stk_pad_plan;

void stk_pad_plan_free(stk_pad_plan *pad);
/* What a record's row has, where lengths are known. */
static inline int64_t stk_pad_plan_length(const stk_pad_plan *pad, int64_t i_record)
{
    int64_t length = pad->lengths[i_record];
    return length < pad->most ? length : pad->most;
}
/* What rows are filled up with, an element of that dtype. */
stk_status stk_pad_plan_set_value(stk_pad_plan *pad, double value, stk_dtype dtype, const char *field);
/* n bytes of it, over and over. */
void stk_pad_plan_fill(const stk_pad_plan *pad, void *to, size_t n);
/* Finishes a row of T elements at dst: cuts what got is too long, copies it where it lies elsewhere, fills up, and sets
 * *length. STK_MISMATCH where it does not fit: "is 600 long, ..." */
stk_status stk_pad_plan_finish(const stk_pad_plan *pad, const stk_item *got, int64_t n_elements, void *dst,
                               int32_t *length);

#endif

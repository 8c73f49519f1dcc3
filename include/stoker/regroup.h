/* Samples made of several samples, or of parts of one: packed sequences, windows, rows of a batch, and as many samples
 * as a function makes of each.
 *
 * Each call turns the data set into one whose records are these new samples, made of what its order and stages gave so
 * far; order and stages that follow work on them. What is made of what is known before the first is read, so counts are
 * exact and a loader starts anywhere. tf.data's rebatch needs no call here: stk_dataset_batch cuts batches of any size,
 * last of all. Threads: as for stoker/dataset.h.
 */
#ifndef STOKER_REGROUP_H
#define STOKER_REGROUP_H

#include "stoker/survey.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- packing --- */

typedef struct stk_packing {
    int64_t length;            /* T: elements of a row */
    const char *const *fields; /* [n_fields] that are packed, the others are left out; NULL: all */
    int n_fields;
    bool cut;     /* longer samples are cut at T; else the first of them is an error */
    double value; /* what rows are filled up with */
} stk_packing;
/* Several short samples in one row: each field [?, ...] becomes [T, ...], and there are "segment" i32 [T], 1, 2, ... by
 * the row's samples, 0 where it is filled up, and "position" i32 [T], an element's place in its sample. Each sample
 * goes into the first row with room for it, in order; in a row they keep it. Samples of no elements are left out. All
 * packed fields of a sample are equally long. All records are read once, and rows are the same in every epoch: shuffle
 * afterwards. */
STK_API void stk_dataset_pack_sequences(stk_dataset *dataset, const stk_packing *packing);

#ifdef __cplusplus
}
#endif
#endif

/* Samples made of several samples, or of parts of one: packed sequences, windows, rows of a batch, and as many samples
 * as a function makes of each.
 *
 * Each call turns the data set into one whose records are these new samples, made of what its order and stages gave so
 * far; order and stages that follow work on them. What is made of what is known before the first is read, so counts are
 * exact and a loader starts anywhere. tf.data's rebatch needs no call here: stk_dataset_batch cuts batches of any size,
 * last of all. Threads: as for stoker/data/dataset.h.
 */
#ifndef STOKER_DATA_REGROUP_H
#define STOKER_DATA_REGROUP_H

#include "stoker/data/filter.h"

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

/* --- windows --- */

typedef struct stk_windows {
    int64_t size;        /* samples of a window, at most */
    int64_t shift;       /* from the first sample of a window to that of the next; 0: size */
    int64_t stride;      /* between the samples of a window; 0: 1 */
    bool drop_remainder; /* windows at the end that are not full; else they are shorter, and their first side is open */
} stk_windows;
/* Each field [...] becomes [size, ...], of samples one after the other: tf.data's window, and batch of each window.
 * Samples of a window have one shape. A sample that is in several windows is made for each of them. */
STK_API void stk_dataset_window(stk_dataset *dataset, stk_windows windows);

/* --- parts of samples --- */

/* The rows of all fields [n, ...] one after the other, each a sample [...]: tf.data's unbatch, of what comes in
 * batches. All fields of a sample have equally many. Where the first side is open, all records are read once; then
 * shuffle afterwards. A sample is made once for all of its rows, while one thread makes them. */
STK_API void stk_dataset_unbatch(stk_dataset *dataset);

/* How many samples are made of this one, 0 or more. A pure function of the fields, [n_fields]. */
typedef int64_t (*stk_count_fn)(void *user, const stk_record_field *fields, int n_fields);
/* Makes the i_part-th of them: out[i] is the place for field i. Another status than STK_OK: the record is corrupt. */
typedef stk_status (*stk_part_fn)(void *user, const stk_record_field *fields, int n_fields, int64_t i_part,
                                  void *const *out);
typedef struct stk_flat_map {
    const stk_array_field *fields; /* [n_fields] of what is made; the data pointers are not used */
    int n_fields;
    int64_t n_parts;    /* of every sample; 0: count says how many */
    stk_count_fn count; /* NULL with n_parts */
    stk_part_fn make;
    void *user; /* borrowed as long as the data set lives */
} stk_flat_map;
/* n samples of each, one after the other: tf.data's flat_map. The functions see fields after the stages so far, encoded
 * ones too. With count all records are read once; then shuffle afterwards. */
STK_API void stk_dataset_flat_map(stk_dataset *dataset, const stk_flat_map *flat_map);

#ifdef __cplusplus
}
#endif
#endif

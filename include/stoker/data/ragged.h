/* Samples of different lengths: arrays whose first side is open, such as tokens of a text, and batches of them.
 *
 * A padded batch is [N, T, ...] where T is the length of its longest sample, or one that was asked for. All samples'
 * lengths are found out once (a scan, see stoker/data/filter.h), so that T is known before a row is written, and rows
 * are written where they belong. Each padded field comes with the true lengths as the field "NAME.length", i32 [N].
 * Threads: as for stoker/data/dataset.h.
 */
#ifndef STOKER_DATA_RAGGED_H
#define STOKER_DATA_RAGGED_H

#include "stoker/data/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- a source --- */

typedef struct stk_ragged_field {
    const char *name;
    stk_dtype dtype;
    stk_shape element;      /* of one element; rank 0: a number */
    const void *values;     /* elements of all samples, one after the other */
    const int64_t *offsets; /* [n_samples + 1]; sample i is elements offsets[i] to offsets[i + 1], which ascend; NULL:
                               one element for each sample, without the open side */
} stk_ragged_field;
/* Arrays in memory, [n_samples, ?, element...]; values and offsets are borrowed as long as the data set lives. */
STK_API stk_dataset *stk_dataset_ragged(int64_t n_samples, const stk_ragged_field *fields, int n_fields);

/* --- padded batches --- */

typedef struct stk_padding {
    const char *field;  /* NULL: every field whose first side is open after all stages */
    int64_t length;     /* T of every batch, and a longer sample is an error that names it; 0: of the longest sample in
                           the batch */
    int64_t max_length; /* longer samples are cut here, and so is T; 0: none is cut */
    double value;       /* what rows are filled up with */
} stk_padding;
/* Batches of n samples, last of all, as tf.data's padded_batch: every field whose first side is open is padded. What a
 * padding does not say is 0; paddings is [n_paddings], borrowed for the call, and may be NULL. All sides but the first
 * are known. Unless `length` is given, all records are read once, and a source that changes from epoch to epoch is
 * refused. Stages are applied before. */
STK_API void stk_dataset_padded_batch(stk_dataset *dataset, int64_t n, bool drop_remainder, const stk_padding *paddings,
                                      int n_paddings);

/* --- batches of samples of like length --- */

typedef struct stk_buckets {
    const char *field;          /* whose length it is; NULL: of the only padded field */
    const int64_t *boundaries;  /* [n_boundaries], ascending: bucket i has lengths from boundaries[i - 1] on and below
                                   boundaries[i], the last one all that are longer */
    const int64_t *batch_sizes; /* [n_boundaries + 1], samples of a batch of each */
    int n_boundaries;
    int64_t tokens;       /* instead of these: as many samples as make a batch of at most N elements, padding included;
                             boundaries are 8 and each a tenth further than the last */
    bool pad_to_boundary; /* T is the boundary - 1, not the longest of the batch; no sample may be in the last bucket */
    bool drop_remainder;  /* of each bucket, samples that do not fill a batch; else they come last, shortest first */
} stk_buckets;
/* Padded batches of samples of like length, last of all: tf.data's bucket_by_sequence_length. A batch comes where its
 * last sample comes in the order of the epoch. How many batches an epoch has is always the same, and which samples are
 * in them is planned when it begins, 4 bytes a sample for each of two or three epochs; so a loader starts at any batch.
 * Batches have as many rows as samples. Loaders that share an epoch have every n_shards-th batch. What the order
 * chooses must be the same in every epoch: shuffle and repeat last. */
STK_API void stk_dataset_bucket_batch(stk_dataset *dataset, const stk_buckets *buckets, const stk_padding *paddings,
                                      int n_paddings);

/* Whether batches differ in their number of rows, which a compiled step cannot. */
STK_API bool stk_dataset_batches_vary(const stk_dataset *dataset);

/* Shape of a field of this very batch, [N, ...]. STK_NOT_FOUND where there is none of that name. */
STK_API stk_status stk_batch_shape(const stk_batch *batch, const char *field, stk_shape *out);

#ifdef __cplusplus
}
#endif
#endif

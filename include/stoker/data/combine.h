/* Several data sets as one, and further ways to order one: windows for shuffles, shards by policy.
 *
 * The data sets that are put together keep their own order and stages, and must have no batches. The result is a data
 * set like any other: it may be shuffled, repeated, given stages, batched, and put together again. It is arithmetic
 * too: record i of it is a sample of one of its data sets, known without walking there, so that resuming costs nothing.
 * Each epoch asks its data sets for the same epoch, and a repeat for as many more, so that a shuffle in them makes a
 * new order each time.
 *
 * The calls below that take data sets take them in any case, after an error too: only the result is to be freed, and it
 * holds the error. Threads: as for stoker/data/dataset.h.
 */
#ifndef STOKER_DATA_COMBINE_H
#define STOKER_DATA_COMBINE_H

#include "stoker/data/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- several data sets as one; datasets is [n], borrowed for the call --- */

/* One after the other. Here and in interleave and mix all data sets have the same fields, of the same type and number
 * of sides; sides that differ are open and must agree after the stages that follow. */
STK_API stk_dataset *stk_dataset_concatenate(stk_dataset *const *datasets, int n);
/* Sample i is sample i of each, with all their fields; as many as the shortest has. No two may have a field of the same
 * name: see stk_dataset_rename. */
STK_API stk_dataset *stk_dataset_zip(stk_dataset *const *datasets, int n);
/* `block` samples of each of `cycle` data sets in turn; one that has ended is replaced by the next when its turn comes
 * again, in tf.data's order. */
STK_API stk_dataset *stk_dataset_interleave(stk_dataset *const *datasets, int n, int64_t cycle, int64_t block);
/* The next sample of one that is drawn for each position, with a chance in proportion to its weight: tf.data's
 * sample_from_datasets. stop_at_empty: ends where one is drawn that has ended; else the others go on. The draws are the
 * same in every epoch, so shuffle the data sets themselves. weights is [n], n at most 64. */
STK_API stk_dataset *stk_dataset_mix(stk_dataset *const *datasets, const double *weights, int n, bool stop_at_empty,
                                     uint64_t seed);
/* Gives a field another name. */
STK_API void stk_dataset_rename(stk_dataset *dataset, const char *field, const char *name);

/* --- shuffle --- */

typedef struct stk_shuffle {
    uint64_t seed;
    int64_t window; /* 0: everything is shuffled; else as tf.data does it with a buffer of N samples, so that
                       sample n comes from the first n + window */
    bool once;      /* the same order in every epoch */
} stk_shuffle;
/* stk_dataset_shuffle(dataset, seed) is stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = seed}). A window is for
 * records that lie together on a slow disk; otherwise a shuffle of everything costs less. */
STK_API void stk_dataset_shuffle_with(stk_dataset *dataset, stk_shuffle shuffle);

/* --- shards by policy, as tf.data's AutoShardPolicy, with its numbers --- */

typedef enum stk_shard_policy {
    STK_SHARD_OFF = -1, /* all samples, in every shard */
    STK_SHARD_AUTO = 0, /* by file where the source consists of files, else by data */
    STK_SHARD_FILE = 1, /* the records of every n_shards-th file; an error where there are fewer files than shards.
                           Draws records like a split, and comes before other order calls */
    STK_SHARD_DATA = 2, /* every n_shards-th sample at this place: stk_dataset_shard */
    STK_SHARD_HINT = 3  /* as by data, at the place of stk_dataset_shard_hint; without one all samples */
} stk_shard_policy;
STK_API void stk_dataset_shard_by(stk_dataset *dataset, stk_shard_policy policy, int64_t n_shards, int64_t i_shard);
/* The place for a shard that is chosen later. */
STK_API void stk_dataset_shard_hint(stk_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif

/* A loader's share of the samples: which position of which epoch is row r of its batch i? Where several loaders share
 * the epochs of one data set, each has every n_shards-th sample of what is left of one, so that after equally many
 * batches of all of them the samples done are the first of the epoch, and any number of loaders can go on from there.
 *
 * Batches count from 0 where the loader starts. Threads: read-only once made.
 */
#ifndef STK_DATA_SHARE_H
#define STK_DATA_SHARE_H

#include "data/dataset.h"
#include "stoker/loader.h"

/* An epoch, or the rest of one. */
typedef struct stk_share_part {
    int64_t begin;       /* its first sample, of all shards */
    int64_t n_batches;   /* of this shard */
    int64_t n_last_rows; /* samples in the last of them */
} stk_share_part;

typedef struct stk_share {
    int64_t n_samples; /* in a whole epoch, of all shards */
    int64_t n_rows;
    bool drop_remainder;
    int64_t n_shards, i_shard;
    int64_t i_epoch, i_first;    /* batch 0 is batch i_first of the first part, which belongs to this epoch */
    stk_share_part first, whole; /* where the loader starts, and every epoch after it */
} stk_share;

stk_status stk_share_make(const stk_dataset *dataset, const stk_loader_config *config, stk_share *out);
/* Batches until the end; INT64_MAX: there is none. */
int64_t stk_share_total(const stk_share *share, int64_t n_epochs);
/* Epoch and number in its part of a batch. */
void stk_share_locate(const stk_share *share, int64_t i_batch, int64_t *i_epoch, int64_t *i_in_part);
/* Samples in a batch. */
int64_t stk_share_count(const stk_share *share, int64_t i_batch);
/* The position in its epoch of the batch's row 0; that of row r is r * n_shards later. */
int64_t stk_share_position(const stk_share *share, int64_t i_batch);
/* Samples of its epoch that are done once all shards have done this batch. */
int64_t stk_share_done(const stk_share *share, int64_t i_batch);

#endif

/* A loader's share of the samples: which position of which epoch is row r of its batch i? Where several loaders share
 * the epochs of one data set, each has every n_shards-th sample of what is left of one, so that after equally many
 * batches of all of them the samples done are the first of the epoch, and any number of loaders can go on from there.
 *
 * Where batches are planned for each epoch (epoch_plan.h), each loader has every n_shards-th batch instead.
 *
 * Batches count from 0 where the loader starts. Threads: read-only once made.
 */
#ifndef STK_DATA_LOADER_SHARE_H
#define STK_DATA_LOADER_SHARE_H

#include "data/loader/epoch_plan.h"
#include "stoker/data/loader.h"

/* An epoch, or the rest of one. */
typedef struct stk_share_part {
    int64_t begin;       /* its first sample, of all shards; of planned batches the first batch */
    int64_t n_batches;   /* of this shard */
    int64_t n_last_rows; /* samples in the last of them */
} stk_share_part;

typedef struct stk_share {
    stk_epoch_plans *plans; /* NULL: batches are cut off one after the other */
    int64_t n_samples;      /* in a whole epoch, of all shards */
    int64_t n_planned;      /* batches in a whole epoch, of all shards, where planned */
    int64_t n_rows;
    bool drop_remainder, together;
    int64_t n_shards, i_shard;
    int64_t n_epochs;            /* from i_epoch on; 0: never ends */
    int64_t i_epoch, i_first;    /* batch 0 is batch i_first of the first part, which belongs to this epoch */
    stk_share_part first, whole; /* where the loader starts, and every epoch after it */
} stk_share;

/* Borrows plans; NULL where batches are not planned. */
stk_status stk_share_make(const stk_dataset *dataset, const stk_loader_config *config, stk_epoch_plans *plans,
                          stk_share *out);
/* Batches until the end; INT64_MAX: there is none. */
int64_t stk_share_total(const stk_share *share, int64_t n_epochs);
/* Epoch and number in its part of a batch. */
void stk_share_locate(const stk_share *share, int64_t i_batch, int64_t *i_epoch, int64_t *i_in_part);
/* Samples in a batch. */
int64_t stk_share_count(const stk_share *share, int64_t i_batch);
/* The positions in its epoch of a batch's rows. */
typedef struct stk_share_rows {
    const uint32_t *planned; /* NULL: first, first + step, ... */
    int64_t first, step;
} stk_share_rows;
stk_share_rows stk_share_find_rows(const stk_share *share, int64_t i_batch);
static inline int64_t stk_share_position(const stk_share_rows *rows, int64_t row)
{
    return rows->planned ? (int64_t)rows->planned[row] : rows->first + row * rows->step;
}
/* Plans the next epoch where this is the batch in the middle of one, so that nobody waits for it. */
void stk_share_plan_ahead(const stk_share *share, int64_t i_batch);
/* Samples of its epoch that are done once all shards have done this batch. */
int64_t stk_share_done(const stk_share *share, int64_t i_batch);

#endif

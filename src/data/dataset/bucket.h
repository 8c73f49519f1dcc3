/* Batches of samples of like length. Buckets are planned when the data set is batched; which samples make batch i
 * depends on the order of the epoch and is planned when the epoch begins. Threads: read-only once planned.
 */
#ifndef STK_DATA_DATASET_BUCKET_H
#define STK_DATA_DATASET_BUCKET_H

#include "data/source/source.h"

typedef struct stk_bucket {
    int64_t below;                   /* lengths; INT64_MAX for the last */
    int64_t size;                    /* samples of a batch */
    int64_t n_samples;               /* in an epoch */
    int64_t longest[STK_MAX_FIELDS]; /* T of padded fields is never more */
} stk_bucket;

typedef struct stk_buckets_plan {
    int n; /* 0: none */
    stk_bucket *bucket;
    int i_field; /* whose length it is */
    bool to_boundary;
    int64_t n_batches, n_batched; /* in an epoch: batches, and samples in them */
} stk_buckets_plan;

void stk_buckets_plan_free(stk_buckets_plan *plan);
/* The bucket of a length. */
int stk_buckets_find(const stk_buckets_plan *plan, int64_t length);

#endif

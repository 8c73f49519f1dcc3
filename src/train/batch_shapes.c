/* Apart from shapes.c, so that building a model does not link the trainer. */
#include "train/batch_shapes.h"

bool stk_shapes_vary(const stk_dataset *dataset)
{
    bool varies = stk_dataset_batches_vary(dataset);
    for (int i = 0; dataset->source && i < dataset->source->n_fields; i++)
        varies = varies || stk_shapes_is_open(dataset, i);
    return varies;
}

void stk_shapes_largest(const stk_dataset *dataset, int64_t *rows, int64_t *length)
{
    const stk_buckets_plan *buckets = &dataset->buckets;
    *rows = stk_dataset_batch_size(dataset);
    *length = 0;
    for (int i = 0; dataset->source && i < dataset->source->n_fields; i++)
        if (stk_shapes_is_open(dataset, i) && dataset->pad[i].longest > *length) *length = dataset->pad[i].longest;
    for (int i = 0; i < buckets->n; i++) {
        const stk_bucket *b = &buckets->bucket[i];
        if (b->n_samples == 0 || b->longest[buckets->i_field] < *length) continue;
        *length = b->longest[buckets->i_field];
        *rows = b->n_samples < b->size ? b->n_samples : b->size;
    }
}

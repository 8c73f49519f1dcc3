/* See data/loader/epoch_plan.h. The order is that of group_by_window: a bucket's batch comes where its last sample
 * does, and what is left in the end comes by bucket, the shortest first. */
#include "data/loader/epoch_plan.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"

struct stk_epoch_plans {
    const stk_dataset *dataset;
    int64_t n;
    stk_epoch_plan *plan;
    stk_mutex lock;
    bool has_lock;
    stk_order_cursor cursor; /* guarded by lock */
    uint32_t *waiting;       /* guarded by lock; samples of each bucket that make no batch yet */
    int64_t *n_waiting;      /* guarded by lock; [buckets] */
    int64_t *first_waiting;  /* [buckets], in waiting */
};

/* Samples of a bucket that may wait for others. */
static int64_t room_of(const stk_bucket *bucket)
{
    return bucket->size < bucket->n_samples ? bucket->size : bucket->n_samples;
}

/* --- memory --- */

static stk_status alloc_plan(stk_epoch_plan *plan, const stk_buckets_plan *buckets)
{
    atomic_init(&plan->epoch, -1);
    plan->position = malloc((size_t)buckets->n_batched * sizeof(*plan->position));
    plan->start = calloc((size_t)buckets->n_batches + 1, sizeof(*plan->start));
    return plan->position && plan->start ? STK_OK
                                         : stk_fail_memory((size_t)buckets->n_batched * sizeof(*plan->position));
}

stk_status stk_epoch_plans_new(const stk_dataset *dataset, int64_t n, stk_epoch_plans **out, size_t *bytes)
{
    const stk_buckets_plan *buckets = &dataset->buckets;
    stk_status status;
    int64_t n_waiting = 0;
    stk_epoch_plans *plans = calloc(1, sizeof(*plans));
    if (!plans) return stk_fail_memory(sizeof(*plans));
    *plans = (stk_epoch_plans){.dataset = dataset, .n = n};
    STK_TRY(stk_mutex_init(&plans->lock));
    plans->has_lock = true;
    plans->plan = calloc((size_t)n, sizeof(*plans->plan));
    plans->n_waiting = calloc((size_t)buckets->n, sizeof(*plans->n_waiting));
    plans->first_waiting = calloc((size_t)buckets->n, sizeof(*plans->first_waiting));
    if (!plans->plan || !plans->n_waiting || !plans->first_waiting) STK_TRY(stk_fail_memory((size_t)n * 32));
    for (int b = 0; b < buckets->n; b++) {
        plans->first_waiting[b] = n_waiting;
        n_waiting += room_of(&buckets->bucket[b]);
    }
    plans->waiting = malloc((size_t)n_waiting * sizeof(*plans->waiting));
    if (!plans->waiting) STK_TRY(stk_fail_memory((size_t)n_waiting * sizeof(*plans->waiting)));
    for (int64_t i = 0; i < n; i++)
        STK_TRY(alloc_plan(&plans->plan[i], buckets));
    *bytes = (size_t)(n_waiting + n * buckets->n_batched) * 4 + (size_t)(n * buckets->n_batches) * 8;
    *out = plans;
    plans = NULL;
done:
    stk_epoch_plans_free(plans);
    return status;
}

void stk_epoch_plans_free(stk_epoch_plans *plans)
{
    if (!plans) return;
    for (int64_t i = 0; plans->plan && i < plans->n; i++) {
        free(plans->plan[i].position);
        free((void *)plans->plan[i].start);
    }
    free(plans->plan);
    free(plans->waiting);
    free(plans->n_waiting);
    free(plans->first_waiting);
    stk_order_cursor_free(&plans->cursor);
    if (plans->has_lock) stk_mutex_destroy(&plans->lock);
    free(plans);
}

/* --- planning --- */

/* The samples that wait in bucket b become the next batch. */
static void emit(stk_epoch_plans *plans, stk_epoch_plan *plan, int b, int64_t *i_batch, int64_t *n)
{
    const uint32_t *waiting = plans->waiting + plans->first_waiting[b];
    for (int64_t i = 0; i < plans->n_waiting[b]; i++)
        plan->position[(*n)++] = waiting[i];
    plans->n_waiting[b] = 0;
    atomic_store_explicit(&plan->start[++*i_batch], *n, memory_order_relaxed);
}

static void make_plan(stk_epoch_plans *plans, stk_epoch_plan *plan, int64_t epoch)
{
    const stk_dataset *dataset = plans->dataset;
    const stk_buckets_plan *buckets = &dataset->buckets;
    const stk_pad_plan *pad = &dataset->pad[buckets->i_field];
    int64_t i_batch = 0, n = 0;
    for (int64_t i = 0; i < dataset->order.count; i++) {
        stk_order_place place = stk_order_map(&dataset->order, &plans->cursor, (uint64_t)epoch, i);
        int b = stk_buckets_find(buckets, stk_pad_plan_length(pad, place.i_record));
        plans->waiting[plans->first_waiting[b] + plans->n_waiting[b]++] = (uint32_t)i;
        if (plans->n_waiting[b] == buckets->bucket[b].size) emit(plans, plan, b, &i_batch, &n);
    }
    for (int b = 0; b < buckets->n; b++) {
        if (plans->n_waiting[b] && !dataset->drop_remainder) emit(plans, plan, b, &i_batch, &n);
        plans->n_waiting[b] = 0;
    }
}

const stk_epoch_plan *stk_epoch_plans_get(stk_epoch_plans *plans, int64_t epoch)
{
    stk_epoch_plan *plan = &plans->plan[epoch % plans->n];
    if (atomic_load(&plan->epoch) == epoch) return plan;
    stk_mutex_lock(&plans->lock);
    /* A later one: the caller was overtaken. */
    if (atomic_load(&plan->epoch) < epoch) {
        make_plan(plans, plan, epoch);
        atomic_store(&plan->epoch, epoch);
    }
    stk_mutex_unlock(&plans->lock);
    return plan;
}

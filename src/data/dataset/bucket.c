/* Planning buckets: boundaries, sizes, and what an epoch has of each. See data/dataset/bucket.h and
 * stoker/data/ragged.h. */
#include "data/dataset/bucket.h"

#include <stdlib.h>

#include "base/error.h"
#include "data/dataset/dataset.h"
#include "data/dataset/scan.h"
#include "stoker/data/ragged.h"

enum { MOST_BUCKETS = 10000 };

void stk_buckets_plan_free(stk_buckets_plan *plan)
{
    free(plan->bucket);
    *plan = (stk_buckets_plan){0};
}

int stk_buckets_find(const stk_buckets_plan *plan, int64_t length)
{
    int low = 0, high = plan->n - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (length < plan->bucket[middle].below)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* --- boundaries --- */

static stk_status new_buckets(stk_buckets_plan *plan, int n)
{
    plan->bucket = calloc((size_t)n, sizeof(*plan->bucket));
    if (!plan->bucket) return stk_fail_memory((size_t)n * sizeof(*plan->bucket));
    plan->n = n;
    plan->bucket[n - 1].below = INT64_MAX;
    return STK_OK;
}

static stk_status set_boundaries(stk_buckets_plan *plan, const stk_buckets *how)
{
    if (!how->boundaries || !how->batch_sizes) return stk_fail(STK_INVALID, "'boundaries' or 'batch_sizes' is missing");
    if (how->n_boundaries > MOST_BUCKETS)
        return stk_fail(STK_INVALID, "%d boundaries: at most %d are possible", how->n_boundaries, MOST_BUCKETS);
    STK_RETURN_IF_ERROR(new_buckets(plan, how->n_boundaries + 1));
    for (int i = 0; i < plan->n; i++) {
        if (how->batch_sizes[i] < 1 || how->batch_sizes[i] > INT32_MAX)
            return stk_fail(STK_INVALID, "a batch of bucket %d cannot have %lld samples", i,
                            (long long)how->batch_sizes[i]);
        plan->bucket[i].size = how->batch_sizes[i];
        if (i == how->n_boundaries) break;
        if (how->boundaries[i] < 1 || (i > 0 && how->boundaries[i] <= how->boundaries[i - 1]))
            return stk_fail(STK_INVALID, "boundary %d is %lld: they are above 0 and ascend", i,
                            (long long)how->boundaries[i]);
        plan->bucket[i].below = how->boundaries[i];
    }
    return STK_OK;
}

/* Each a tenth further than the last, from 8 on, as in tensor2tensor. */
static int64_t next_boundary(int64_t at)
{
    return at == 0 ? 8 : at + at / 10 + (at < 10);
}

static stk_status make_boundaries(stk_buckets_plan *plan, int64_t longest)
{
    int n = 1;
    for (int64_t at = next_boundary(0); at <= longest; at = next_boundary(at))
        n++;
    STK_RETURN_IF_ERROR(new_buckets(plan, n));
    int64_t at = 0;
    for (int i = 0; i + 1 < n; i++)
        plan->bucket[i].below = at = next_boundary(at);
    return STK_OK;
}

/* --- what an epoch has --- */

/* Counts the samples, once for each time that an epoch meets their record. */
static void count_samples(const stk_dataset *dataset, stk_buckets_plan *plan)
{
    const stk_order *order = &dataset->order;
    int64_t n = stk_order_n_met(order), n_times = order->count / n;
    for (int64_t i = 0; i < n; i++) {
        int64_t i_record = order->kept ? (int64_t)order->kept[i] : i;
        int64_t length = stk_pad_plan_length(&dataset->pad[plan->i_field], i_record);
        stk_bucket *bucket = &plan->bucket[stk_buckets_find(plan, length)];
        bucket->n_samples += n_times;
        for (int f = 0; f < dataset->source->n_fields; f++) {
            const stk_pad_plan *pad = &dataset->pad[f];
            length = pad->lengths ? stk_pad_plan_length(pad, i_record) : pad->fixed;
            if (length > bucket->longest[f]) bucket->longest[f] = length;
        }
    }
}

static void pad_to_boundaries(stk_buckets_plan *plan)
{
    for (int i = 0; plan->to_boundary && i < plan->n; i++)
        if (plan->bucket[i].n_samples) plan->bucket[i].longest[plan->i_field] = plan->bucket[i].below - 1;
}

static stk_status set_sizes(stk_buckets_plan *plan, int64_t tokens)
{
    for (int i = 0; i < plan->n; i++) {
        int64_t longest = plan->bucket[i].longest[plan->i_field];
        plan->bucket[i].size = longest ? tokens / longest : tokens;
        if (plan->bucket[i].size > INT32_MAX) plan->bucket[i].size = INT32_MAX;
        if (plan->bucket[i].size) continue;
        return stk_fail(STK_INVALID,
                        "a sample is %lld long, more than the %lld tokens of a batch: cut it with "
                        "'max_length', or leave it out by a filter",
                        (long long)longest, (long long)tokens);
    }
    return STK_OK;
}

static void count_batches(stk_dataset *dataset, stk_buckets_plan *plan, bool drop_remainder)
{
    for (int i = 0; i < plan->n; i++) {
        const stk_bucket *b = &plan->bucket[i];
        int64_t n_full = b->n_samples / b->size, rest = b->n_samples % b->size;
        plan->n_batches += n_full + (rest && !drop_remainder);
        plan->n_batched += drop_remainder ? n_full * b->size : b->n_samples;
        int64_t most = b->n_samples < b->size ? b->n_samples : b->size;
        if (most > dataset->n_rows) dataset->n_rows = most;
    }
    dataset->drop_remainder = drop_remainder;
}

/* --- planning --- */

static stk_status find_field(const stk_dataset *dataset, const stk_buckets *how, int *out)
{
    int f = how->field ? stk_dataset_find_field(dataset, how->field) : -1;
    if (how->field && f < 0) return STK_NOT_FOUND;
    for (int i = 0; i < dataset->source->n_fields && !how->field; i++) {
        if (!dataset->pad[i].on) continue;
        if (f >= 0) return stk_fail(STK_INVALID, "several fields are padded: say whose length it is by 'field'");
        f = i;
    }
    if (!dataset->pad[f].lengths)
        return stk_fail(STK_INVALID, "field '%s' is not padded to the longest of a batch, so it has no buckets",
                        dataset->source->field[f].name);
    *out = f;
    return STK_OK;
}

static stk_status plan_buckets(stk_dataset *dataset, const stk_buckets *how, stk_buckets_plan *plan)
{
    const stk_order *order = &dataset->order;
    int64_t n = stk_order_n_met(order);
    STK_RETURN_IF_ERROR(find_field(dataset, how, &plan->i_field));
    plan->to_boundary = how->pad_to_boundary;
    if (order->count > (int64_t)UINT32_MAX)
        return stk_fail(STK_UNSUPPORTED, "%lld samples have no buckets: at most 2^32 - 1 do", (long long)order->count);
    if (order->count % n) return stk_fail(STK_INTERNAL, "an order is not folded");
    if (how->n_boundaries < 0 || how->tokens < 0 || (how->n_boundaries == 0) != (how->boundaries == NULL))
        return stk_fail(STK_INVALID, "'n_boundaries' or 'tokens' is wrong");
    if (how->tokens && (how->n_boundaries || how->batch_sizes))
        return stk_fail(STK_INVALID, "'tokens' and 'boundaries' exclude each other");
    if (how->tokens)
        STK_RETURN_IF_ERROR(make_boundaries(plan, dataset->pad[plan->i_field].longest));
    else
        STK_RETURN_IF_ERROR(set_boundaries(plan, how));
    count_samples(dataset, plan);
    if (plan->to_boundary && how->boundaries && plan->bucket[plan->n - 1].n_samples)
        return stk_fail(STK_INVALID,
                        "a sample is %lld long, and the last boundary to pad to is %lld: longer ones have "
                        "no bucket",
                        (long long)plan->bucket[plan->n - 1].longest[plan->i_field],
                        (long long)how->boundaries[how->n_boundaries - 1]);
    if (plan->to_boundary && !how->boundaries) return stk_fail(STK_INVALID, "there are no boundaries to pad to");
    pad_to_boundaries(plan);
    if (how->tokens) STK_RETURN_IF_ERROR(set_sizes(plan, how->tokens));
    count_batches(dataset, plan, how->drop_remainder);
    if (plan->n_batches) return STK_OK;
    return stk_fail(STK_INVALID, "no bucket has samples for a whole batch, and the remainders are to be dropped");
}

void stk_dataset_bucket_batch(stk_dataset *dataset, const stk_buckets *buckets, const stk_padding *paddings,
                              int n_paddings)
{
    if (!dataset) return;
    stk_status status;
    if (!stk_dataset_can_order(dataset, "bucket_batch")) return;
    STK_TRY(buckets ? STK_OK : stk_fail(STK_INVALID, "'buckets' is NULL"));
    STK_TRY(stk_dataset_check_hint(dataset));
    /* Else an epoch would have other samples than the last, and another number of batches. */
    if ((status = stk_order_fold(&dataset->order)) != STK_OK) STK_TRY(stk_fail_prefix(status, "cannot make buckets: "));
    STK_TRY(stk_pad_plan_make(dataset, paddings, n_paddings));
    STK_TRY(plan_buckets(dataset, buckets, &dataset->buckets));
done:
    stk_dataset_keep_error(dataset, status);
}

bool stk_dataset_batches_vary(const stk_dataset *dataset)
{
    if (!dataset) return false;
    return dataset->buckets.n > 0;
}

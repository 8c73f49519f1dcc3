/* See data/loader/share.h. */
#include "data/loader/share.h"

#include "base/error.h"

/* So that no product overflows. */
enum { MOST_SHARDS = 1000000 };

static stk_share_part make_part(const stk_share *share, int64_t begin)
{
    int64_t n_left = share->n_samples - begin, n_rows = share->n_rows;
    /* All shards drop alike, so that they have equally many batches. */
    int64_t n = share->drop_remainder ? n_left / share->n_shards
                                      : (n_left - share->i_shard + share->n_shards - 1) / share->n_shards;
    if (share->drop_remainder || n < 1)
        return (stk_share_part){.begin = begin, .n_batches = n / n_rows, .n_last_rows = n_rows};
    int64_t n_batches = (n - 1) / n_rows + 1;
    return (stk_share_part){.begin = begin, .n_batches = n_batches, .n_last_rows = n - (n_batches - 1) * n_rows};
}

/* --- planned batches --- */

/* The rest of an epoch from batch `begin` on, dealt out. */
static stk_share_part deal_part(const stk_share *share, int64_t begin)
{
    int64_t n_left = share->n_planned - begin, n = share->n_shards;
    return (stk_share_part){.begin = begin,
                            .n_batches = share->drop_remainder ? n_left / n : (n_left - share->i_shard + n - 1) / n};
}

/* The number in its epoch of a batch of this shard. */
static int64_t planned_batch(const stk_share *share, const stk_share_part *part, int64_t i_in_part)
{
    return part->begin + i_in_part * share->n_shards + share->i_shard;
}

static int64_t start_of(const stk_epoch_plan *plan, int64_t i_batch)
{
    return atomic_load_explicit(&plan->start[i_batch], memory_order_relaxed);
}

/* The batch that begins with that sample of the plan. */
static stk_status find_planned(const stk_share *share, int64_t epoch, int64_t i_sample, int64_t *out)
{
    const stk_epoch_plan *plan = stk_epoch_plans_get(share->plans, epoch);
    int64_t low = 0, high = share->n_planned;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (start_of(plan, middle) < i_sample)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    if (low == share->n_planned || start_of(plan, low) == i_sample) return STK_OK;
    return stk_fail(STK_INVALID, "no batch begins at sample %lld of epoch %lld", (long long)i_sample, (long long)epoch);
}

/* --- starting --- */

static stk_status check_start(const stk_share *share, const stk_loader_config *config)
{
    if (share->n_shards < 1 || share->i_shard < 0 || share->i_shard >= share->n_shards)
        return stk_fail(STK_INVALID, "there is no shard %lld of %lld: they count from 0", (long long)share->i_shard,
                        (long long)share->n_shards);
    if (share->n_shards > MOST_SHARDS)
        return stk_fail(STK_INVALID, "'n_shards' is %lld: at most %d are possible", (long long)share->n_shards,
                        MOST_SHARDS);
    if (config->i_epoch < 0) return stk_fail(STK_INVALID, "'i_epoch' is %lld", (long long)config->i_epoch);
    if (config->i_sample < 0 || config->i_sample > share->n_samples)
        return stk_fail(STK_INVALID, "cannot start at sample %lld: an epoch has %lld", (long long)config->i_sample,
                        (long long)share->n_samples);
    if (share->together && (!share->drop_remainder || share->plans))
        return stk_fail(STK_INVALID,
                        "shards whose rows lie together need whole batches of one size: drop what is left");
    if (config->i_sample && config->i_batch)
        return stk_fail(STK_INVALID, "'i_batch' and 'i_sample' exclude each other: both say where to start");
    return STK_OK;
}

static stk_status make_parts(stk_share *share, const stk_loader_config *config)
{
    int64_t begin = 0;
    if (!share->plans) {
        share->whole = make_part(share, 0);
        share->first = make_part(share, config->i_sample);
        return STK_OK;
    }
    if (config->i_sample) STK_RETURN_IF_ERROR(find_planned(share, config->i_epoch, config->i_sample, &begin));
    share->whole = deal_part(share, 0);
    share->first = deal_part(share, begin);
    return STK_OK;
}

stk_status stk_share_make(const stk_dataset *dataset, const stk_loader_config *config, stk_epoch_plans *plans,
                          stk_share *out)
{
    stk_share share = {.plans = plans,
                       .n_planned = dataset->buckets.n_batches,
                       .n_samples = dataset->order.count,
                       .n_rows = dataset->n_rows,
                       .drop_remainder = dataset->drop_remainder,
                       .together = config->shards_together,
                       .n_shards = config->n_shards ? config->n_shards : 1,
                       .i_shard = config->i_shard,
                       .n_epochs = config->n_epochs,
                       .i_epoch = config->i_epoch,
                       .i_first = config->i_batch};
    STK_RETURN_IF_ERROR(check_start(&share, config));
    STK_RETURN_IF_ERROR(make_parts(&share, config));
    if (share.whole.n_batches < 1)
        return stk_fail(STK_INVALID, "%lld samples make no batch of %lld for each of %lld shards",
                        (long long)share.n_samples, (long long)share.n_rows, (long long)share.n_shards);
    if (config->i_batch < 0 || config->i_batch >= share.whole.n_batches)
        return stk_fail(STK_INVALID, "cannot start at batch %lld: an epoch has batches 0 to %lld",
                        (long long)config->i_batch, (long long)share.whole.n_batches - 1);
    *out = share;
    return STK_OK;
}

int64_t stk_share_total(const stk_share *share, int64_t n_epochs)
{
    int64_t total;
    if (n_epochs == 0 || __builtin_mul_overflow(n_epochs - 1, share->whole.n_batches, &total) ||
        __builtin_add_overflow(total, share->first.n_batches - share->i_first, &total))
        return INT64_MAX;
    return total;
}

/* The part that a batch is of, and its number there. */
static const stk_share_part *find_part(const stk_share *share, int64_t i_batch, int64_t *i_epoch, int64_t *i_in_part)
{
    int64_t n_first = share->first.n_batches - share->i_first, n = share->whole.n_batches;
    if (i_batch < n_first) {
        *i_epoch = share->i_epoch;
        *i_in_part = share->i_first + i_batch;
        return &share->first;
    }
    *i_epoch = share->i_epoch + 1 + (i_batch - n_first) / n;
    *i_in_part = (i_batch - n_first) % n;
    return &share->whole;
}

void stk_share_locate(const stk_share *share, int64_t i_batch, int64_t *i_epoch, int64_t *i_in_part)
{
    find_part(share, i_batch, i_epoch, i_in_part);
}

int64_t stk_share_count(const stk_share *share, int64_t i_batch)
{
    int64_t i_epoch, i_in_part;
    const stk_share_part *part = find_part(share, i_batch, &i_epoch, &i_in_part);
    if (share->plans) {
        const stk_epoch_plan *plan = stk_epoch_plans_get(share->plans, i_epoch);
        int64_t i = planned_batch(share, part, i_in_part);
        return start_of(plan, i + 1) - start_of(plan, i);
    }
    return i_in_part == part->n_batches - 1 ? part->n_last_rows : share->n_rows;
}

stk_share_rows stk_share_find_rows(const stk_share *share, int64_t i_batch)
{
    int64_t i_epoch, i_in_part;
    const stk_share_part *part = find_part(share, i_batch, &i_epoch, &i_in_part);
    if (share->plans) {
        const stk_epoch_plan *plan = stk_epoch_plans_get(share->plans, i_epoch);
        return (stk_share_rows){.planned = plan->position + start_of(plan, planned_batch(share, part, i_in_part))};
    }
    int64_t batch = part->begin + i_in_part * share->n_rows * share->n_shards;
    if (share->together) return (stk_share_rows){.first = batch + share->i_shard * share->n_rows, .step = 1};
    return (stk_share_rows){.first = batch + share->i_shard, .step = share->n_shards};
}

void stk_share_plan_ahead(const stk_share *share, int64_t i_batch)
{
    int64_t i_epoch, i_in_part;
    if (!share->plans) return;
    const stk_share_part *part = find_part(share, i_batch, &i_epoch, &i_in_part);
    bool is_last = share->n_epochs && i_epoch + 1 >= share->i_epoch + share->n_epochs;
    if (i_in_part == part->n_batches / 2 && !is_last) (void)stk_epoch_plans_get(share->plans, i_epoch + 1);
}

int64_t stk_share_done(const stk_share *share, int64_t i_batch)
{
    int64_t i_epoch, i_in_part, n = share->n_rows * share->n_shards;
    const stk_share_part *part = find_part(share, i_batch, &i_epoch, &i_in_part);
    bool is_last = i_in_part == part->n_batches - 1;
    if (share->plans) {
        int64_t next = part->begin + (i_in_part + 1) * share->n_shards;
        if (next >= share->n_planned || (share->drop_remainder && is_last)) return share->n_samples;
        return start_of(stk_epoch_plans_get(share->plans, i_epoch), next);
    }
    /* What is left is less than a batch for each: dropped, or in this batch. */
    if (share->drop_remainder && is_last) return share->n_samples;
    return (share->n_samples - part->begin) / n <= i_in_part ? share->n_samples : part->begin + (i_in_part + 1) * n;
}

/* See data/share.h. */
#include "data/share.h"

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
    if (config->i_sample && config->i_batch)
        return stk_fail(STK_INVALID, "'i_batch' and 'i_sample' exclude each other: both say where to start");
    return STK_OK;
}

stk_status stk_share_make(const stk_dataset *dataset, const stk_loader_config *config, stk_share *out)
{
    stk_share share = {.n_samples = dataset->order.count,
                       .n_rows = dataset->n_rows,
                       .drop_remainder = dataset->drop_remainder,
                       .n_shards = config->n_shards ? config->n_shards : 1,
                       .i_shard = config->i_shard,
                       .i_epoch = config->i_epoch,
                       .i_first = config->i_batch};
    STK_RETURN_IF_ERROR(check_start(&share, config));
    share.whole = make_part(&share, 0);
    share.first = make_part(&share, config->i_sample);
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
    return i_in_part == part->n_batches - 1 ? part->n_last_rows : share->n_rows;
}

int64_t stk_share_position(const stk_share *share, int64_t i_batch)
{
    int64_t i_epoch, i_in_part;
    const stk_share_part *part = find_part(share, i_batch, &i_epoch, &i_in_part);
    return part->begin + i_in_part * share->n_rows * share->n_shards + share->i_shard;
}

int64_t stk_share_done(const stk_share *share, int64_t i_batch)
{
    int64_t i_epoch, i_in_part, n = share->n_rows * share->n_shards;
    const stk_share_part *part = find_part(share, i_batch, &i_epoch, &i_in_part);
    bool is_last = i_in_part == part->n_batches - 1;
    /* What is left is less than a batch for each: dropped, or in this batch. */
    if (share->drop_remainder && is_last) return share->n_samples;
    return (share->n_samples - part->begin) / n <= i_in_part ? share->n_samples : part->begin + (i_in_part + 1) * n;
}

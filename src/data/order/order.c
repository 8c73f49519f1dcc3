/* See data/order/order.h. */
#include "data/order/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"

stk_status stk_order_init(stk_order *order, int64_t n_records)
{
    *order = (stk_order){.n_records = n_records, .count = n_records};
    if (n_records < 1) return stk_fail(STK_INVALID, "the source has no records");
    return STK_OK;
}

void stk_order_free(stk_order *order)
{
    free(order->kept);
    order->kept = NULL;
}

static stk_status add_op(stk_order *order, stk_order_op op, int64_t count)
{
    if (order->n_ops == STK_MAX_ORDER_OPS)
        return stk_fail(STK_INVALID, "a data set has at most %d order operations", STK_MAX_ORDER_OPS);
    op.n_in = order->count;
    order->op[order->n_ops++] = op;
    order->count = count;
    return STK_OK;
}

/* --- building --- */

static bool is_kept(uint64_t seed, double share, bool keep_rest, int64_t i_record)
{
    double u = (double)(stk_mix64(seed ^ stk_mix64((uint64_t)i_record)) >> 11) * 0x1p-53;
    return (u < share) != keep_rest;
}

stk_status stk_order_split(stk_order *order, double share, bool keep_rest, uint64_t seed)
{
    if (!(share >= 0 && share <= 1))
        return stk_fail(STK_INVALID, "cannot split off a share of %g: not in 0 to 1", share);
    if (order->n_ops)
        return stk_fail(STK_INVALID, "cannot split after other order operations: split first, as it draws records");
    int64_t n_before = order->count;
    if (order->n_records > (int64_t)UINT32_MAX)
        return stk_fail(STK_UNSUPPORTED, "cannot split %lld records: at most 2^32 - 1 are possible",
                        (long long)order->n_records);
    int64_t n = 0;
    for (int64_t i = 0; i < n_before; i++)
        n += is_kept(seed, share, keep_rest, order->kept ? order->kept[i] : i);
    if (n == 0)
        return stk_fail(STK_INVALID, "splitting %lld records by a share of %g leaves none", (long long)n_before, share);
    uint32_t *kept = malloc((size_t)n * sizeof(*kept));
    if (!kept) return stk_fail_memory((size_t)n * sizeof(*kept));
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n_before; i++) {
        int64_t i_record = order->kept ? order->kept[i] : i;
        if (is_kept(seed, share, keep_rest, i_record)) kept[n_kept++] = (uint32_t)i_record;
    }
    free(order->kept);
    order->kept = kept;
    order->count = n;
    return STK_OK;
}

stk_status stk_order_shuffle(stk_order *order, uint64_t seed)
{
    return stk_order_shuffle_with(order, seed, 0, true);
}

stk_status stk_order_shuffle_with(stk_order *order, uint64_t seed, int64_t window, bool reshuffle)
{
    if (window < 0 || window > STK_MOST_WINDOW)
        return stk_fail(STK_INVALID, "cannot shuffle with a window of %lld: 1 to %lld are possible, 0 for all",
                        (long long)window, (long long)STK_MOST_WINDOW);
    if (window == 1) return STK_OK;
    stk_order_op op = {.kind = STK_ORDER_SHUFFLE, .seed = seed, .fixed = !reshuffle};
    op.window.size = window; /* for planning it again */
    if (window == 0 || window >= order->count) {
        op.all = stk_permutation_of(order->count);
    } else {
        op.kind = STK_ORDER_WINDOW;
        op.window = stk_window_of(order->count, window);
    }
    return add_op(order, op, order->count);
}

stk_status stk_order_take(stk_order *order, int64_t n)
{
    if (n < 1 || n > order->count)
        return stk_fail(STK_INVALID, "cannot take %lld samples of %lld", (long long)n, (long long)order->count);
    if (n == order->count) return STK_OK;
    /* Skipping none is an entry that keeps later splits out. */
    return add_op(order, (stk_order_op){.kind = STK_ORDER_SKIP, .a = 0}, n);
}

stk_status stk_order_skip(stk_order *order, int64_t n)
{
    if (n < 0 || n >= order->count)
        return stk_fail(STK_INVALID, "cannot skip %lld samples of %lld%s", (long long)n, (long long)order->count,
                        n == order->count ? ": none would be left" : "");
    return add_op(order, (stk_order_op){.kind = STK_ORDER_SKIP, .a = n}, order->count - n);
}

stk_status stk_order_repeat(stk_order *order, int64_t n)
{
    if (n < 1) return stk_fail(STK_INVALID, "cannot repeat %lld times: at least 1 is needed", (long long)n);
    if (n > INT64_MAX / order->count)
        return stk_fail(STK_INVALID, "repeating %lld samples %lld times is more than can be counted",
                        (long long)order->count, (long long)n);
    return add_op(order, (stk_order_op){.kind = STK_ORDER_REPEAT, .a = n}, order->count * n);
}

static stk_status check_shard(int64_t n_shards, int64_t i_shard)
{
    if (n_shards >= 1 && i_shard >= 0 && i_shard < n_shards) return STK_OK;
    return stk_fail(STK_INVALID, "there is no shard %lld of %lld: they count from 0", (long long)i_shard,
                    (long long)n_shards);
}

stk_status stk_order_shard(stk_order *order, int64_t n_shards, int64_t i_shard)
{
    STK_RETURN_IF_ERROR(check_shard(n_shards, i_shard));
    if (i_shard >= order->count)
        return stk_fail(STK_INVALID, "shard %lld of %lld is empty: there are %lld samples", (long long)i_shard,
                        (long long)n_shards, (long long)order->count);
    return add_op(order, (stk_order_op){.kind = STK_ORDER_SHARD, .a = n_shards, .b = i_shard},
                  (order->count - i_shard - 1) / n_shards + 1);
}

/* --- shards of files, and places for shards --- */

stk_status stk_order_shard_files(stk_order *order, int64_t n_files, stk_file_of file_of, const void *user,
                                 int64_t n_shards, int64_t i_shard)
{
    STK_RETURN_IF_ERROR(check_shard(n_shards, i_shard));
    if (order->n_ops)
        return stk_fail(STK_INVALID, "cannot shard by file after other order operations: shard first, as it draws "
                                     "records");
    if (n_files < n_shards)
        return stk_fail(STK_INVALID, "cannot shard by file: %lld files are not enough for %lld shards; shard by data",
                        (long long)n_files, (long long)n_shards);
    if (order->n_records > (int64_t)UINT32_MAX)
        return stk_fail(STK_UNSUPPORTED, "cannot shard %lld records by file: at most 2^32 - 1 are possible",
                        (long long)order->n_records);
    if (n_shards == 1) return STK_OK;
    int64_t n = 0;
    uint32_t *kept = malloc((size_t)order->count * sizeof(*kept));
    if (!kept) return stk_fail_memory((size_t)order->count * sizeof(*kept));
    for (int64_t i = 0; i < order->count; i++) {
        int64_t i_record = order->kept ? order->kept[i] : i;
        if (file_of(user, i_record) % n_shards == i_shard) kept[n++] = (uint32_t)i_record;
    }
    if (n == 0) {
        free(kept);
        return stk_fail(STK_INVALID, "shard %lld of %lld is empty: no record lies in its files", (long long)i_shard,
                        (long long)n_shards);
    }
    uint32_t *smaller = realloc(kept, (size_t)n * sizeof(*kept));
    free(order->kept);
    order->kept = smaller ? smaller : kept;
    order->count = n;
    return STK_OK;
}

static int find_hint(const stk_order *order)
{
    for (int i = 0; i < order->n_ops; i++)
        if (order->op[i].is_hint) return i;
    return -1;
}

bool stk_order_has_hint(const stk_order *order)
{
    return find_hint(order) >= 0;
}

stk_status stk_order_shard_hint(stk_order *order)
{
    if (stk_order_has_hint(order))
        return stk_fail(STK_INVALID, "there is a place for a shard already: one is possible");
    return add_op(order, (stk_order_op){.kind = STK_ORDER_SHARD, .a = 1, .is_hint = true}, order->count);
}

stk_status stk_order_add_again(stk_order *order, const stk_order_op *op, int64_t n_out)
{
    switch (op->kind) {
    case STK_ORDER_SHUFFLE: return stk_order_shuffle_with(order, op->seed, op->window.size, !op->fixed);
    case STK_ORDER_WINDOW: return stk_order_shuffle_with(order, op->seed, op->window.size, !op->fixed);
    case STK_ORDER_SKIP:
        if (op->a > 0) return stk_order_skip(order, op->a);
        return stk_order_take(order, n_out < order->count ? n_out : order->count);
    case STK_ORDER_REPEAT: return stk_order_repeat(order, op->a);
    case STK_ORDER_SHARD: return stk_order_shard(order, op->a, op->b);
    }
    return STK_OK;
}

stk_status stk_order_fill_hint(stk_order *order, int64_t n_shards, int64_t i_shard)
{
    const stk_order before = *order;
    int i = find_hint(order);
    stk_status status;
    STK_RETURN_IF_ERROR(check_shard(n_shards, i_shard));
    if (i < 0) return STK_OK;
    order->n_ops = i;
    order->count = before.op[i].n_in;
    STK_TRY(stk_order_shard(order, n_shards, i_shard));
    while (++i < before.n_ops)
        STK_TRY(stk_order_add_again(order, &before.op[i], i + 1 < before.n_ops ? before.op[i + 1].n_in : before.count));
done:
    if (status != STK_OK) *order = before;
    return status;
}

bool stk_order_varies(const stk_order *order)
{
    for (int i = 0; i < order->n_ops; i++) {
        bool shuffles = order->op[i].kind == STK_ORDER_SHUFFLE || order->op[i].kind == STK_ORDER_WINDOW;
        if (shuffles && !order->op[i].fixed) return true;
    }
    return false;
}

/* --- mapping --- */

/* Of one operation in one epoch. */
static uint64_t key_of(const stk_order_op *op, uint64_t epoch)
{
    return stk_mix64(op->seed ^ stk_mix64(op->fixed ? 0 : epoch));
}

stk_order_place stk_order_map(const stk_order *order, stk_order_cursor *cursor, uint64_t epoch, int64_t n)
{
    for (int i = order->n_ops - 1; i >= 0; i--) {
        const stk_order_op *op = &order->op[i];
        switch (op->kind) {
        case STK_ORDER_SHUFFLE: n = (int64_t)stk_permute(&op->all, key_of(op, epoch), (uint64_t)n); break;
        case STK_ORDER_WINDOW:
            n = stk_window_map(&op->window, cursor ? &cursor->window[i] : NULL, key_of(op, epoch), n);
            break;
        case STK_ORDER_SKIP: n += op->a; break;
        case STK_ORDER_REPEAT:
            epoch = epoch * (uint64_t)op->a + (uint64_t)(n / op->n_in);
            n %= op->n_in;
            break;
        case STK_ORDER_SHARD: n = n * op->a + op->b; break;
        }
    }
    return (stk_order_place){.i_record = order->kept ? order->kept[n] : n, .epoch = epoch};
}

void stk_order_cursor_free(stk_order_cursor *cursor)
{
    for (int i = 0; i < STK_MAX_ORDER_OPS; i++)
        stk_window_cursor_free(&cursor->window[i]);
}

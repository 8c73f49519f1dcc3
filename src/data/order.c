/* See data/order.h. */
#include "data/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"

/* Up to this many samples a shuffle draws one of all n! permutations with a 64-bit word: a Feistel network over so few
 * cells could not reach all of them. 16! is 2^44. */
enum { TINY = 16 };

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
    uint64_t n = (uint64_t)order->count, a = (uint64_t)sqrt((double)n);
    while (a * a < n)
        a++;
    uint64_t b = (n + a - 1) / a;
    /* Small rectangles mix less in a round, and their shuffles cost nothing that matters. */
    int n_rounds = n < 4096 ? 12 : 6;
    return add_op(
        order,
        (stk_order_op){
            .kind = STK_ORDER_SHUFFLE, .seed = seed, .side = {(uint32_t)a, (uint32_t)b}, .n_rounds = n_rounds},
        order->count);
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

stk_status stk_order_shard(stk_order *order, int64_t n_shards, int64_t i_shard)
{
    if (n_shards < 1 || i_shard < 0 || i_shard >= n_shards)
        return stk_fail(STK_INVALID, "there is no shard %lld of %lld: they count from 0", (long long)i_shard,
                        (long long)n_shards);
    if (i_shard >= order->count)
        return stk_fail(STK_INVALID, "shard %lld of %lld is empty: there are %lld samples", (long long)i_shard,
                        (long long)n_shards, (long long)order->count);
    return add_op(order, (stk_order_op){.kind = STK_ORDER_SHARD, .a = n_shards, .b = i_shard},
                  (order->count - i_shard - 1) / n_shards + 1);
}

/* --- mapping --- */

/* One of all n! permutations, drawn by key with the factorial number system. */
static uint64_t permute_tiny(uint64_t key, uint64_t n, uint64_t x)
{
    uint8_t place[TINY];
    for (uint64_t i = 0; i < n; i++)
        place[i] = (uint8_t)i;
    for (uint64_t i = n - 1; i > 0; i--) {
        uint64_t j = key % (i + 1);
        key /= i + 1;
        uint8_t t = place[i];
        place[i] = place[j];
        place[j] = t;
    }
    return place[x];
}

/* A number in [0, n) from a half of the position and the round's key. */
static inline uint32_t round_number(uint64_t key, uint32_t half, uint32_t n)
{
    uint64_t h = (key ^ half) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
    h *= 0x9E3779B97F4A7C15u;
    return (uint32_t)((h >> 32) * n >> 32);
}

static inline uint32_t add_modulo(uint32_t x, uint32_t y, uint32_t n)
{
    uint64_t sum = (uint64_t)x + y;
    return (uint32_t)(sum >= n ? sum - n : sum);
}

static uint64_t permute(const stk_order_op *op, uint64_t epoch, uint64_t x)
{
    uint64_t n = (uint64_t)op->n_in, key = stk_mix64(op->seed ^ stk_mix64(epoch));
    if (n <= TINY) return permute_tiny(key, n, x);
    uint32_t a = op->side[0], b = op->side[1];
    do {
        uint32_t left = (uint32_t)(x / b), right = (uint32_t)(x % b);
        uint64_t round_key = key;
        for (int i = 0; i < op->n_rounds; i += 2) {
            left = add_modulo(left, round_number(round_key, right, a), a);
            round_key += 0xA0761D6478BD642Fu;
            right = add_modulo(right, round_number(round_key, left, b), b);
            round_key += 0xA0761D6478BD642Fu;
        }
        x = (uint64_t)left * b + right;
    } while (x >= n); /* A cell outside is followed on: its cycle comes back inside. */
    return x;
}

stk_order_place stk_order_map(const stk_order *order, uint64_t epoch, int64_t n)
{
    for (int i = order->n_ops - 1; i >= 0; i--) {
        const stk_order_op *op = &order->op[i];
        switch (op->kind) {
        case STK_ORDER_SHUFFLE: n = (int64_t)permute(op, epoch, (uint64_t)n); break;
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

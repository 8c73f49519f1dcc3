/* Order: the permutation is one and is uniform, chains agree with plain lists, splits are disjoint and complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/order/order.h"

static void shuffle_is_a_bijection(void **state)
{
    (void)state;
    static const int64_t more[] = {255, 256, 257, 1000, 4095, 4096, 4097, 60000, 65536, 100003};
    for (int64_t k = 1; k < 80 + (int64_t)(sizeof(more) / sizeof(more[0])); k++) {
        int64_t n = k < 80 ? k : more[k - 80];
        stk_order order;
        assert_int_equal(stk_order_init(&order, n), STK_OK);
        assert_int_equal(stk_order_shuffle(&order, (uint64_t)k), STK_OK);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            unsigned char *seen = calloc((size_t)n, 1);
            for (int64_t i = 0; i < n; i++) {
                int64_t i_record = stk_order_map(&order, NULL, epoch, i).i_record;
                assert_in_range(i_record, 0, n - 1);
                assert_false(seen[i_record]++);
            }
            free(seen);
        }
        stk_order_free(&order);
    }
}

/* Deviation of counts from `expected`, in standard deviations of the chi-squared sum. */
static double chi_squared_z(const int *counts, size_t n, double expected, double n_free)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return (sum - n_free) / sqrt(2 * n_free);
}

/* Every record is equally often at every position, and every distance equally often between neighbours. */
static void shuffle_is_uniform(void **state)
{
    (void)state;
    static const int sizes[] = {2, 3, 5, 16, 17, 20, 31, 100};
    enum { N_EPOCHS = 20000, MOST = 100 };
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        int n = sizes[k];
        stk_order order;
        assert_int_equal(stk_order_init(&order, n), STK_OK);
        assert_int_equal(stk_order_shuffle(&order, 12345), STK_OK);
        int *cell = calloc(MOST * MOST, sizeof(int)), distance[MOST] = {0};
        for (int e = 0; e < N_EPOCHS; e++) {
            int64_t last = 0;
            for (int i = 0; i < n; i++) {
                int64_t r = stk_order_map(&order, NULL, (uint64_t)e, i).i_record;
                cell[i * n + r]++;
                if (i) distance[(r - last + n) % n]++;
                last = r;
            }
        }
        assert_true(fabs(chi_squared_z(cell, (size_t)(n * n), (double)N_EPOCHS / n, (n - 1.0) * (n - 1.0))) < 4.5);
        if (n > 2) assert_true(fabs(chi_squared_z(distance + 1, (size_t)n - 1, N_EPOCHS, n - 2.0)) < 4.5);
        free(cell);
    }
}

/* All 3! and 5! permutations come equally often. */
static void tiny_sets_take_every_order(void **state)
{
    (void)state;
    enum { N_EPOCHS = 60000 };
    for (int n = 3; n <= 5; n += 2) {
        stk_order order;
        assert_int_equal(stk_order_init(&order, n), STK_OK);
        assert_int_equal(stk_order_shuffle(&order, 1), STK_OK);
        int counts[3125] = {0}, used[120], n_used = 0;
        for (int e = 0; e < N_EPOCHS; e++) {
            int64_t code = 0;
            for (int i = 0; i < n; i++)
                code = code * n + stk_order_map(&order, NULL, (uint64_t)e, i).i_record;
            counts[code]++;
        }
        for (int i = 0; i < 3125; i++)
            if (counts[i]) used[n_used++] = counts[i];
        assert_int_equal(n_used, n == 3 ? 6 : 120);
        assert_true(fabs(chi_squared_z(used, (size_t)n_used, (double)N_EPOCHS / n_used, n_used - 1.0)) < 4.5);
    }
}

static void large_sets_and_epochs_are_unrelated(void **state)
{
    (void)state;
    int64_t n = 60000;
    stk_order order;
    assert_int_equal(stk_order_init(&order, n), STK_OK);
    assert_int_equal(stk_order_shuffle(&order, 0), STK_OK);
    double with_place = 0, with_next_epoch = 0, with_neighbour = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = (double)stk_order_map(&order, NULL, 0, i).i_record / (double)n - 0.5;
        with_place += a * ((double)i / (double)n - 0.5);
        with_next_epoch += a * ((double)stk_order_map(&order, NULL, 1, i).i_record / (double)n - 0.5);
        with_neighbour += a * ((double)stk_order_map(&order, NULL, 0, (i + 1) % n).i_record / (double)n - 0.5);
    }
    double scale = 12 / sqrt((double)n);
    assert_true(fabs(with_place * scale) < 4.5);
    assert_true(fabs(with_next_epoch * scale) < 4.5);
    assert_true(fabs(with_neighbour * scale) < 4.5);
    /* A set too large to list still maps into itself. */
    assert_int_equal(stk_order_init(&order, INT64_MAX - 5), STK_OK);
    assert_int_equal(stk_order_shuffle(&order, 3), STK_OK);
    for (int64_t i = 0; i < 1000; i++)
        assert_in_range(stk_order_map(&order, NULL, 2, INT64_MAX - 6 - i).i_record, 0, INT64_MAX - 6);
}

/* --- chains against lists --- */

enum { SHUFFLE, TAKE, SKIP, REPEAT, SHARD, N_KINDS };

typedef struct list_op {
    int kind;
    int64_t a, b;
    uint64_t seed;
} list_op;

typedef struct list {
    stk_order_place *place;
    int64_t n;
} list;

static list make_list(const list_op *op, int n_ops, int64_t n_records, uint64_t epoch);

static list shuffled(list in, uint64_t seed, uint64_t epoch)
{
    stk_order order;
    assert_int_equal(stk_order_init(&order, in.n), STK_OK);
    assert_int_equal(stk_order_shuffle(&order, seed), STK_OK);
    list out = {malloc((size_t)in.n * sizeof(*out.place)), in.n};
    for (int64_t i = 0; i < in.n; i++)
        out.place[i] = in.place[stk_order_map(&order, NULL, epoch, i).i_record];
    return out;
}

static list repeated(const list_op *op, int n_ops, int64_t n_records, uint64_t epoch, int64_t times)
{
    list out = {NULL, 0};
    for (int64_t pass = 0; pass < times; pass++) {
        list inner = make_list(op, n_ops, n_records, epoch * (uint64_t)times + (uint64_t)pass);
        out.place = realloc(out.place, (size_t)(out.n + inner.n) * sizeof(*out.place));
        memcpy(out.place + out.n, inner.place, (size_t)inner.n * sizeof(*out.place));
        out.n += inner.n;
        free(inner.place);
    }
    return out;
}

/* What the chain gives, made the plain way: whole lists. */
static list make_list(const list_op *op, int n_ops, int64_t n_records, uint64_t epoch)
{
    if (n_ops == 0) {
        list all = {malloc((size_t)n_records * sizeof(*all.place)), n_records};
        for (int64_t i = 0; i < n_records; i++)
            all.place[i] = (stk_order_place){i, epoch};
        return all;
    }
    const list_op *last = &op[n_ops - 1];
    if (last->kind == REPEAT) return repeated(op, n_ops - 1, n_records, epoch, last->a);
    list in = make_list(op, n_ops - 1, n_records, epoch);
    if (last->kind == SHUFFLE) {
        list out = shuffled(in, last->seed, epoch);
        free(in.place);
        return out;
    }
    list out = {malloc((size_t)in.n * sizeof(*out.place)), 0};
    for (int64_t i = 0; i < in.n; i++) {
        bool keep = last->kind == TAKE ? i < last->a : last->kind == SKIP ? i >= last->a : i % last->a == last->b;
        if (keep) out.place[out.n++] = in.place[i];
    }
    free(in.place);
    return out;
}

static stk_status add_op(stk_order *order, const list_op *op)
{
    switch (op->kind) {
    case SHUFFLE: return stk_order_shuffle(order, op->seed);
    case TAKE: return stk_order_take(order, op->a);
    case SKIP: return stk_order_skip(order, op->a);
    case REPEAT: return stk_order_repeat(order, op->a);
    default: return stk_order_shard(order, op->a, op->b);
    }
}

static void chains_agree_with_lists(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(1, 2, 3, 4);
    for (int round = 0; round < 400; round++) {
        int64_t n_records = 1 + stk_rng_below(&rng, 60);
        stk_order order;
        assert_int_equal(stk_order_init(&order, n_records), STK_OK);
        list_op ops[6];
        int n_ops = 0;
        for (int i = 0; i < 6; i++) {
            list_op op = {.kind = (int)stk_rng_below(&rng, N_KINDS), .seed = stk_rng_u32(&rng)};
            op.a = op.kind == REPEAT || op.kind == SHARD ? 1 + stk_rng_below(&rng, 3)
                                                         : stk_rng_below(&rng, (uint32_t)order.count + 1);
            op.b = op.kind == SHARD ? stk_rng_below(&rng, (uint32_t)op.a) : 0;
            if (add_op(&order, &op) == STK_OK) ops[n_ops++] = op;
        }
        uint64_t epoch = stk_rng_below(&rng, 5);
        list expected = make_list(ops, n_ops, n_records, epoch);
        assert_int_equal(expected.n, order.count);
        for (int64_t i = 0; i < order.count; i++) {
            stk_order_place place = stk_order_map(&order, NULL, epoch, i);
            assert_int_equal(place.i_record, expected.place[i].i_record);
            assert_int_equal(place.epoch, expected.place[i].epoch);
        }
        free(expected.place);
        stk_order_free(&order);
    }
}

static void splits_are_disjoint_and_complete(void **state)
{
    (void)state;
    static const double shares[] = {0.1, 0.5, 0.9};
    int64_t n = 10000;
    for (int k = 0; k < 3; k++) {
        stk_order part, rest;
        assert_int_equal(stk_order_init(&part, n), STK_OK);
        assert_int_equal(stk_order_init(&rest, n), STK_OK);
        assert_int_equal(stk_order_split(&part, shares[k], false, 77), STK_OK);
        assert_int_equal(stk_order_split(&rest, shares[k], true, 77), STK_OK);
        assert_int_equal(part.count + rest.count, n);
        assert_true(fabs((double)part.count - shares[k] * (double)n) < 250);
        assert_int_equal(stk_order_shuffle(&part, 5), STK_OK);
        unsigned char seen[10000] = {0};
        for (int64_t i = 0; i < part.count; i++)
            assert_false(seen[stk_order_map(&part, NULL, 1, i).i_record]++);
        for (int64_t i = 0; i < rest.count; i++)
            assert_false(seen[stk_order_map(&rest, NULL, 0, i).i_record]++);
        stk_order_free(&part);
        stk_order_free(&rest);
    }
    /* A split of a split: three parts of one source. */
    stk_order order;
    assert_int_equal(stk_order_init(&order, n), STK_OK);
    assert_int_equal(stk_order_split(&order, 0.5, false, 1), STK_OK);
    assert_int_equal(stk_order_split(&order, 0.5, true, 2), STK_OK);
    assert_true(labs((long)order.count - 2500) < 250);
    stk_order_free(&order);
}

static void wrong_operations_are_refused(void **state)
{
    (void)state;
    stk_order order;
    assert_int_equal(stk_order_init(&order, 0), STK_INVALID);
    assert_int_equal(stk_order_init(&order, 10), STK_OK);
    assert_int_equal(stk_order_take(&order, 0), STK_INVALID);
    assert_int_equal(stk_order_take(&order, 11), STK_INVALID);
    assert_string_equal(stk_error_text(), "cannot take 11 samples of 10");
    assert_int_equal(stk_order_skip(&order, 10), STK_INVALID);
    assert_int_equal(stk_order_skip(&order, -1), STK_INVALID);
    assert_int_equal(stk_order_repeat(&order, 0), STK_INVALID);
    assert_int_equal(stk_order_repeat(&order, INT64_MAX / 10 + 1), STK_INVALID);
    assert_int_equal(stk_order_shard(&order, 0, 0), STK_INVALID);
    assert_int_equal(stk_order_shard(&order, 3, 3), STK_INVALID);
    assert_int_equal(stk_order_shard(&order, 20, 10), STK_INVALID);
    assert_int_equal(stk_order_split(&order, 1.5, false, 0), STK_INVALID);
    assert_int_equal(stk_order_split(&order, (double)NAN, false, 0), STK_INVALID);
    assert_int_equal(stk_order_split(&order, 0, false, 0), STK_INVALID);
    assert_int_equal(order.count, 10);
    assert_int_equal(stk_order_take(&order, 5), STK_OK);
    assert_int_equal(stk_order_split(&order, 0.5, false, 0), STK_INVALID);
    while (order.n_ops < STK_MAX_ORDER_OPS)
        assert_int_equal(stk_order_shuffle(&order, 0), STK_OK);
    assert_int_equal(stk_order_shuffle(&order, 0), STK_INVALID);
    stk_order_free(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffle_is_a_bijection),       cmocka_unit_test(shuffle_is_uniform),
        cmocka_unit_test(tiny_sets_take_every_order),   cmocka_unit_test(large_sets_and_epochs_are_unrelated),
        cmocka_unit_test(chains_agree_with_lists),      cmocka_unit_test(splits_are_disjoint_and_complete),
        cmocka_unit_test(wrong_operations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Interleaving as arithmetic: tf.data's order, which was recorded, and every sample once for any lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "data/order/runs.h"
#include "golden/order_golden.h"

static void the_order_is_that_of_tf_data(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(golden_interleave) / sizeof(golden_interleave[0]); k++) {
        stk_runs runs;
        assert_int_equal(stk_runs_interleave(golden_interleave[k].n, golden_interleave[k].n_children,
                                             golden_interleave[k].cycle, golden_interleave[k].block, &runs),
                         STK_OK);
        assert_int_equal(runs.count, golden_interleave[k].n_samples);
        for (int64_t i = 0; i < runs.count; i++) {
            int64_t child, at;
            stk_runs_find(&runs, i, &child, &at);
            assert_int_equal(100 * child + at, golden_interleave[k].sample[i]);
        }
        stk_runs_free(&runs);
    }
}

/* The walk that tf.data makes, one sample a call: the child of each sample, in *out. Returns how many. */
static int walk(const int64_t *counts, int n_children, int n_cycle, int64_t block, int *out)
{
    int64_t taken[16] = {0};
    int open[16], n = 0, i_next = 0, at = 0, n_open = 0;
    int64_t in_block = 0;
    memset(open, -1, sizeof(open));
    while (n_open > 0 || i_next < n_children) {
        int child = open[at];
        if (child < 0 && i_next < n_children) {
            open[at] = i_next++;
            n_open++;
        } else if (child >= 0 && taken[child] < counts[child]) {
            taken[child]++;
            out[n++] = child;
            if (++in_block < block) continue;
            in_block = 0;
            at = (at + 1) % n_cycle;
        } else {
            if (child >= 0) {
                open[at] = -1;
                n_open--;
            }
            in_block = 0;
            at = (at + 1) % n_cycle;
        }
    }
    return n;
}

static void any_lengths_agree_with_the_walk(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(9, 8, 7, 6);
    for (int round = 0; round < 2000; round++) {
        int64_t counts[12], next[12] = {0};
        int n_children = 1 + (int)stk_rng_below(&rng, 12), expected[600], most = 1 + (int)stk_rng_below(&rng, 40);
        for (int i = 0; i < n_children; i++)
            counts[i] = stk_rng_below(&rng, (uint32_t)most);
        int n_cycle = 1 + (int)stk_rng_below(&rng, 14);
        int64_t block = 1 + stk_rng_below(&rng, 8);
        stk_runs runs;
        assert_int_equal(stk_runs_interleave(counts, n_children, n_cycle, block, &runs), STK_OK);
        assert_int_equal(runs.count, walk(counts, n_children, n_cycle, block, expected));
        for (int64_t i = 0; i < runs.count; i++) {
            int64_t child, at;
            stk_runs_find(&runs, i, &child, &at);
            assert_int_equal(child, expected[i]);
            assert_int_equal(at, next[child]++);
        }
        stk_runs_free(&runs);
    }
}

static void long_ones_need_few_runs(void **state)
{
    (void)state;
    const int64_t counts[] = {1000000007, 0, 123456789012, 5, 1000000007};
    stk_runs runs;
    int64_t child, at;
    assert_int_equal(stk_runs_interleave(counts, 5, 3, 4, &runs), STK_OK);
    assert_int_equal(runs.count, 2 * INT64_C(1000000007) + INT64_C(123456789012) + 5);
    assert_true(runs.n_runs < 20);
    stk_runs_find(&runs, runs.count - 1, &child, &at);
    assert_int_equal(child, 2);
    assert_int_equal(at, INT64_C(123456789011));
    stk_runs_free(&runs);
    assert_int_equal(stk_runs_interleave(counts, 5, 1, INT64_MAX, &runs), STK_OK);
    assert_int_equal(runs.n_runs, 4);
    stk_runs_find(&runs, 1000000007, &child, &at);
    assert_int_equal(child, 2);
    assert_int_equal(at, 0);
    stk_runs_free(&runs);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    const int64_t counts[] = {INT64_MAX, 1};
    stk_runs runs;
    assert_int_equal(stk_runs_interleave(counts, 2, 1, 1, &runs), STK_INVALID);
    assert_int_equal(stk_runs_interleave(counts + 1, 1, 0, 1, &runs), STK_INVALID);
    assert_int_equal(stk_runs_interleave(counts + 1, 1, 1, 0, &runs), STK_INVALID);
    stk_runs_free(&runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_tf_data),
        cmocka_unit_test(any_lengths_agree_with_the_walk),
        cmocka_unit_test(long_ones_need_few_runs),
        cmocka_unit_test(wrong_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mixes: every sample of a data set in its order, chances in proportion to the weights, both ways to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/error.h"
#include "data/order/mix.h"
#include "golden/order_golden.h"

/* Walks through and counts how many of each there are; each comes in its own order. */
static void count_samples(const stk_mix *mix, int64_t *n)
{
    for (int64_t i = 0; i < mix->count; i++) {
        int64_t child, at;
        stk_mix_find(mix, i, &child, &at);
        assert_in_range(child, 0, mix->n_children - 1);
        assert_int_equal(at, n[child]++);
        assert_true(at < mix->n[child]);
    }
}

static void it_goes_on_until_all_have_ended(void **state)
{
    (void)state;
    const int64_t counts[] = {1000, 10, 300, 0};
    const double weights[] = {1, 2, 0.5, 7};
    for (uint64_t seed = 0; seed < 20; seed++) {
        int64_t n[4] = {0};
        stk_mix mix;
        assert_int_equal(stk_mix_make(counts, weights, 4, false, seed, &mix), STK_OK);
        assert_int_equal(mix.count, 1310);
        count_samples(&mix, n);
        for (int i = 0; i < 4; i++)
            assert_int_equal(n[i], counts[i]);
        stk_mix_free(&mix);
    }
}

static void it_stops_where_one_is_empty(void **state)
{
    (void)state;
    const int64_t counts[] = {100, 40};
    const double weights[] = {1, 1};
    int64_t total = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        int64_t n[2] = {0};
        stk_mix mix;
        assert_int_equal(stk_mix_make(counts, weights, 2, true, seed, &mix), STK_OK);
        count_samples(&mix, n);
        /* The one that ended was drawn once more; its end alone stops nothing. */
        assert_true(n[0] == 100 || n[1] == 40);
        total += mix.count;
        stk_mix_free(&mix);
    }
    /* The 41st draw of the second comes at 82 on average. */
    assert_true(fabs((double)total / 400 - 81) < 2);
}

static void chances_follow_the_weights(void **state)
{
    (void)state;
    const int64_t counts[] = {100000, 100000, 100000};
    const double weights[] = {0.3, 0.05, 0.65};
    int64_t n[3] = {0}, n_pairs = 0, last = 0;
    stk_mix mix;
    assert_int_equal(stk_mix_make(counts, weights, 3, true, 11, &mix), STK_OK);
    for (int64_t i = 0; i < 60000; i++) {
        int64_t child, at;
        stk_mix_find(&mix, i, &child, &at);
        n[child]++;
        n_pairs += child == 0 && last == 0;
        last = child;
    }
    for (int i = 0; i < 3; i++)
        assert_true(fabs((double)n[i] - 60000 * weights[i]) < 4.5 * sqrt(60000 * weights[i] * (1 - weights[i])));
    assert_true(fabs((double)n_pairs - 60000 * 0.09) < 400); /* draws do not depend on the one before */
    stk_mix_free(&mix);
}

/* Where weights of 0 leave nothing to chance, tf.data gives the very samples; and its draws repeat in each epoch. */
static void weights_of_zero_are_never_drawn(void **state)
{
    (void)state;
    const int64_t counts[] = {3, 5};
    assert_true(GOLDEN_MIX_REPEATS);
    for (size_t k = 0; k < sizeof(golden_mix) / sizeof(golden_mix[0]); k++) {
        stk_mix mix;
        assert_int_equal(stk_mix_make(counts, golden_mix[k].weight, 2, golden_mix[k].stop_at_empty, 3, &mix), STK_OK);
        assert_int_equal(mix.count, golden_mix[k].n_samples);
        for (int64_t i = 0; i < mix.count; i++) {
            int64_t child, at;
            stk_mix_find(&mix, i, &child, &at);
            assert_int_equal(100 * child + at, golden_mix[k].sample[i]);
        }
        stk_mix_free(&mix);
    }
}

static void wrong_weights_are_refused(void **state)
{
    (void)state;
    const int64_t counts[] = {3, 0};
    const double wrong[][2] = {{-1, 1}, {(double)NAN, 1}, {1, (double)INFINITY}, {0, 0}, {0, 1}};
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
        stk_mix mix;
        assert_int_equal(stk_mix_make(counts, wrong[k], 2, k % 2, 0, &mix), STK_INVALID);
        stk_mix_free(&mix);
    }
    assert_string_equal(stk_error_text(), "the mix is empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_until_all_have_ended), cmocka_unit_test(it_stops_where_one_is_empty),
        cmocka_unit_test(chances_follow_the_weights),      cmocka_unit_test(weights_of_zero_are_never_drawn),
        cmocka_unit_test(wrong_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Windows of a shuffle: the arithmetic is a buffer played through, cursors change nothing, and the chances are those of
 * tf.data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/order/order.h"
#include "golden/order_golden.h"

enum { MOST = 3000 };

/* A buffer as in tf.data: what slot each step draws is seen from where its sample lies. */
static void expect_buffer(const stk_shuffle_window *window, uint64_t key)
{
    int64_t buffer[MOST], n = window->size, n_in = 0, n_same = 0;
    unsigned char seen[MOST] = {0};
    while (n_in < n) {
        buffer[n_in] = n_in;
        n_in++;
    }
    for (int64_t i = 0; i < window->n; i++) {
        int64_t sample = stk_window_map(window, NULL, key, i), slot = 0;
        assert_in_range(sample, 0, window->n - 1);
        assert_false(seen[sample]++);
        while (slot < n && buffer[slot] != sample)
            slot++;
        assert_true(slot < n);
        n_same += sample == i;
        buffer[slot] = n_in < window->n ? n_in++ : -1;
    }
    assert_true(window->n < 100 || n_same < window->n / 2);
}

static void every_sample_comes_out_of_the_buffer_once(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{2, 1}, {5, 2}, {17, 16}, {100, 3}, {100, 99}, {1000, 64}, {2999, 700}};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        for (uint64_t key = 1; key < 5; key++) {
            stk_shuffle_window window = stk_window_of(sizes[k][0], sizes[k][1]);
            expect_buffer(&window, stk_mix64(key));
        }
}

static void cursors_change_no_answer(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{100, 7}, {3000, 500}, {3000, 2}, {40, 39}};
    stk_rng rng = stk_rng_make(1, 2, 3, 4);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        int64_t n = sizes[k][0], expected[3][MOST];
        stk_shuffle_window window = stk_window_of(n, sizes[k][1]);
        stk_window_cursor cursor = {0};
        for (uint64_t key = 0; key < 3; key++)
            for (int64_t i = 0; i < n; i++)
                expected[key][i] = stk_window_map(&window, NULL, key, i);
        /* Walks with gaps, as a worker among others makes them, with single questions in between. */
        for (int round = 0; round < 200; round++) {
            uint64_t key = stk_rng_below(&rng, 3);
            int64_t at = stk_rng_below(&rng, (uint32_t)n), gap = 1 + stk_rng_below(&rng, 40);
            for (int step = 0; step < 50 && at < n; step++, at += stk_rng_below(&rng, (uint32_t)gap)) {
                assert_int_equal(stk_window_map(&window, &cursor, key, at), expected[key][at]);
                int64_t other = stk_rng_below(&rng, (uint32_t)n);
                if (step % 7 == 3) assert_int_equal(stk_window_map(&window, &cursor, key, other), expected[key][other]);
            }
        }
        stk_window_cursor_free(&cursor);
    }
}

/* Two samples of counts come from the same chances: chi-squared for each place. */
static void the_chances_are_those_of_tf_data(void **state)
{
    (void)state;
    enum { N = 8, N_EPOCHS = 20000 };
    int counts[N][N] = {{0}};
    stk_order order;
    assert_int_equal(stk_order_init(&order, N), STK_OK);
    assert_int_equal(stk_order_shuffle_with(&order, 5, 3, true), STK_OK);
    for (int e = 0; e < N_EPOCHS; e++)
        for (int64_t i = 0; i < N; i++)
            counts[i][stk_order_map(&order, NULL, (uint64_t)e, i).i_record]++;
    for (int i = 0; i < N; i++) {
        double sum = 0, n_free = -1;
        for (int k = 0; k < N; k++) {
            int a = counts[i][k], b = golden_window[i][k];
            assert_int_equal(a == 0, b == 0);
            if (a == 0) continue;
            sum += (double)(a - b) * (a - b) / (a + b);
            n_free++;
        }
        assert_true((sum - n_free) / sqrt(2 * n_free) < 4.5);
    }
}

static void windows_are_operations_of_an_order(void **state)
{
    (void)state;
    stk_order order, same, whole;
    assert_int_equal(stk_order_init(&order, 50), STK_OK);
    assert_int_equal(stk_order_shuffle_with(&order, 1, -1, true), STK_INVALID);
    assert_int_equal(stk_order_shuffle_with(&order, 1, (int64_t)1 << 31, true), STK_INVALID);
    /* A window of one shuffles nothing, one of all is a shuffle of all. */
    assert_int_equal(stk_order_shuffle_with(&order, 1, 1, true), STK_OK);
    assert_int_equal(order.n_ops, 0);
    same = whole = order;
    assert_int_equal(stk_order_shuffle_with(&whole, 1, 50, true), STK_OK);
    assert_int_equal(stk_order_shuffle(&same, 1), STK_OK);
    for (int64_t i = 0; i < 50; i++)
        assert_int_equal(stk_order_map(&whole, NULL, 3, i).i_record, stk_order_map(&same, NULL, 3, i).i_record);
    /* Once: the same in every epoch, and the epoch of the place stays the real one. */
    same = order;
    assert_int_equal(stk_order_shuffle_with(&order, 1, 10, false), STK_OK);
    assert_int_equal(stk_order_shuffle_with(&same, 1, 0, false), STK_OK);
    assert_false(stk_order_varies(&order));
    assert_true(stk_order_varies(&whole));
    int n_moved = 0;
    for (int64_t i = 0; i < 50; i++) {
        assert_int_equal(stk_order_map(&order, NULL, 0, i).i_record, stk_order_map(&order, NULL, 7, i).i_record);
        assert_int_equal(stk_order_map(&same, NULL, 0, i).i_record, stk_order_map(&same, NULL, 7, i).i_record);
        assert_int_equal(stk_order_map(&same, NULL, 7, i).epoch, 7);
        n_moved += stk_order_map(&order, NULL, 0, i).i_record != i;
    }
    assert_true(n_moved > 25);
    /* A window over repeats mixes passes, and repeats of a window do not: tf.data's two orders. */
    assert_int_equal(stk_order_init(&order, 50), STK_OK);
    assert_int_equal(stk_order_repeat(&order, 2), STK_OK);
    assert_int_equal(stk_order_shuffle_with(&order, 1, 20, true), STK_OK);
    assert_int_equal(stk_order_init(&same, 50), STK_OK);
    assert_int_equal(stk_order_shuffle_with(&same, 1, 20, true), STK_OK);
    assert_int_equal(stk_order_repeat(&same, 2), STK_OK);
    int n_of_second = 0, n_equal = 0;
    for (int64_t i = 0; i < 50; i++) {
        n_of_second += stk_order_map(&order, NULL, 0, i).epoch == 1;
        assert_int_equal(stk_order_map(&same, NULL, 0, i).epoch, 0);
        n_equal += stk_order_map(&same, NULL, 0, i).i_record == stk_order_map(&same, NULL, 0, i + 50).i_record;
    }
    assert_true(n_of_second > 0);
    assert_true(n_equal < 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_comes_out_of_the_buffer_once),
        cmocka_unit_test(cursors_change_no_answer),
        cmocka_unit_test(the_chances_are_those_of_tf_data),
        cmocka_unit_test(windows_are_operations_of_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

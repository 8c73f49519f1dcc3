/* Packing: nothing alive overlaps, the bound is the bound, and known cases are packed to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "passes/plan_offsets.h"

static void expect_packed(stk_plan_buffer *b, int n, int n_nodes, double most_over)
{
    size_t bound, peak;
    assert_int_equal(stk_plan_find_bound(b, n, n_nodes, &bound, NULL), STK_OK);
    assert_int_equal(stk_plan_pack(b, n, bound, &peak), STK_OK);
    assert_true(peak >= bound);
    size_t highest = 0;
    for (int i = 0; i < n; i++) {
        if (b[i].offset + b[i].bytes > highest) highest = b[i].offset + b[i].bytes;
        for (int j = 0; j < i; j++) {
            bool together = b[i].first <= b[j].last && b[j].first <= b[i].last;
            bool apart = b[i].offset >= b[j].offset + b[j].bytes || b[j].offset >= b[i].offset + b[i].bytes;
            if (together && !apart) fail_msg("buffers %d and %d overlap", i, j);
        }
    }
    assert_int_equal(highest, peak);
    if ((double)peak > (double)bound * most_over)
        fail_msg("peak %zu is %.3f times the bound %zu", peak, (double)peak / (double)bound, bound);
}

/* Forward values live until their gradients, as in training: a stack. */
static void stacks_are_packed_to_the_bound(void **state)
{
    (void)state;
    stk_plan_buffer b[40];
    for (int i = 0; i < 40; i++)
        b[i] = (stk_plan_buffer){64 * (size_t)(1 + i * 7 % 11), 0, i, 79 - i, i};
    expect_packed(b, 40, 80, 1);
    expect_packed(b, 0, 80, 1);
}

/* Here largest first is one unit above the bound; another order is not. */
static void other_orders_are_tried(void **state)
{
    (void)state;
    stk_plan_buffer b[] = {{4 * 64, 0, 0, 1, 0}, {4 * 64, 0, 4, 5, 1}, {3 * 64, 0, 1, 3, 2},
                           {3 * 64, 0, 3, 4, 3}, {64, 0, 2, 5, 4},     {64, 0, 0, 2, 5}};
    expect_packed(b, 6, 5, 1);
}

/* Stacks with short-lived values in between, of all sizes. */
static void random_steps(void **state)
{
    (void)state;
    enum { N = 300 };
    static stk_plan_buffer b[N];
    for (int seed = 0; seed < 20; seed++) {
        stk_rng rng = stk_rng_make((uint64_t)seed, 1, 2, 3);
        for (int i = 0; i < N; i++) {
            int first = (int)stk_rng_below(&rng, N);
            bool is_saved = stk_rng_below(&rng, 2) == 0;
            int last = is_saved && first < N / 2 ? N - first : first + 1 + (int)stk_rng_below(&rng, 3);
            b[i] = (stk_plan_buffer){64 * (size_t)(1 + stk_rng_below(&rng, 200)), 0, first, last, i};
        }
        expect_packed(b, N, 2 * N, 1.04);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_packed_to_the_bound),
        cmocka_unit_test(other_orders_are_tried),
        cmocka_unit_test(random_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

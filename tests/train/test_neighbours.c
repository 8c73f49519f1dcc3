/* Recall@k by hand: rows on a line, ties, rows that are alone, and rows of a width that is no multiple of anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "train/neighbours.h"

static void expect(const float *row, const int32_t *label, int64_t n, int64_t width, const double want[3])
{
    static const int64_t k[3] = {1, 2, 4};
    double recall[3];
    stk_neighbours all = {0};
    int64_t half = n / 2; /* as from two batches */
    assert_int_equal(stk_neighbours_add(&all, row, label, half, width), STK_OK);
    assert_int_equal(stk_neighbours_add(&all, row + half * width, label + half, n - half, width), STK_OK);
    assert_int_equal(stk_neighbours_recall(&all, k, 3, recall), STK_OK);
    for (int i = 0; i < 3; i++)
        if (!(fabs(recall[i] - want[i]) < 1e-12) && !(isnan(recall[i]) && isnan(want[i])))
            fail_msg("recall at %d is %g, not %g", (int)k[i], recall[i], want[i]);
    stk_neighbours_free(&all);
}

static void on_a_line(void **state)
{
    (void)state;
    /* 0 1 . 3 : its own at once; 10 and 14 of one class with two others between. */
    static const float row[] = {0, 1, 3, 10, 12, 13, 14};
    static const int32_t label[] = {5, 5, 5, -1, 5, 9, -1};
    /* The last 9 is alone and does not count. 12: behind 13, 10 and 14, at 9 off, is 3. 10 to 14: behind 12 and 13. */
    expect(row, label, 7, 1, (double[]){3.0 / 6, 3.0 / 6, 6.0 / 6});
}

/* What a network that has collapsed gives is no success. */
static void all_alike(void **state)
{
    (void)state;
    static const float row[6 * 3] = {0};
    static const int32_t label[] = {0, 1, 0, 1, 0, 1};
    expect(row, label, 6, 3, (double[]){0, 0, 1});
}

static void alone(void **state)
{
    (void)state;
    static const float row[] = {1, 2, 3};
    static const int32_t label[] = {1, 2, 3};
    expect(row, label, 3, 1, (double[]){NAN, NAN, NAN});
    expect(row, label, 0, 1, (double[]){NAN, NAN, NAN});
}

/* The last of 11 numbers counts as much as the first. */
static void every_number(void **state)
{
    (void)state;
    for (int at = 0; at < 11; at++) {
        float row[4 * 11] = {0};
        static const int32_t label[] = {0, 1, 0, 1};
        row[0 * 11 + at] = row[2 * 11 + at] = 1;
        row[2 * 11 + (at + 1) % 11] = 0.25f;
        row[3 * 11 + (at + 1) % 11] = 0.25f;
        expect(row, label, 4, 11, (double[]){1, 1, 1});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_a_line), cmocka_unit_test(all_alike),
                                       cmocka_unit_test(alone), cmocka_unit_test(every_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Statistics compared with numbers from elsewhere: tables of critical values, closed forms, and their own promise, that
 * intervals hold what they say as often as they say. */
#include "bench/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stoker/rng.h"

static void assert_near(double x, double y)
{
    if (!(fabs(x - y) <= 1e-9 * fmax(1, fabs(y)))) fail_msg("%.12g is not %.12g", x, y);
}

static void test_quantiles(void **state)
{
    (void)state;
    double x[] = {7, 1, 3, 9, 5, 11};
    stk_bench_sort(x, 6);
    /* numpy.quantile([1, 3, 5, 7, 9, 11], q) */
    assert_near(stk_bench_quantile(x, 6, 0.5), 6);
    assert_near(stk_bench_quantile(x, 6, 0.25), 3.5);
    assert_near(stk_bench_quantile(x, 6, 0.9), 10);
    assert_near(stk_bench_quantile(x, 6, 0), 1);
    assert_near(stk_bench_quantile(x, 6, 1), 11);
    assert_near(stk_bench_quantile(x, 1, 0.5), 1);
    double low, high;
    stk_bench_fences(x, 6, &low, &high);
    assert_near(low, -4);
    assert_near(high, 16);
}

/* Critical values of the signed-rank test: Hollander and Wolfe, table A.4. With d = 1, 3, 9, 27, ... Walsh averages are
 * all different; the interval's ends are the ones after as many as the critical value from both ends. */
static void test_pairs(void **state)
{
    (void)state;
    static const struct {
        int n, limit_95, limit_99;
    } table[] = {{6, 0, -1}, {8, 3, 0}, {10, 8, 3}, {12, 13, 7}, {15, 25, 15}, {20, 52, 37}};
    for (size_t t = 0; t < sizeof(table) / sizeof(table[0]); t++) {
        int n = table[t].n, n_means = 0;
        double d[20], mean[210], power = 1;
        for (int i = 0; i < n; i++, power *= 3)
            d[i] = power;
        for (int i = 0; i < n; i++)
            for (int k = i; k < n; k++)
                mean[n_means++] = 0.5 * (d[i] + d[k]);
        stk_bench_sort(mean, n_means);
        stk_bench_interval found;
        assert_int_equal(stk_bench_pair_interval(d, n, 0.95, &found), STK_OK);
        assert_near(found.low, mean[table[t].limit_95]);
        assert_near(found.high, mean[n_means - 1 - table[t].limit_95]);
        assert_int_equal(stk_bench_pair_interval(d, n, 0.99, &found), STK_OK);
        if (table[t].limit_99 < 0)
            assert_true(isnan(found.low) && isnan(found.high));
        else
            assert_near(found.low, mean[table[t].limit_99]);
    }
    stk_bench_interval none;
    assert_int_equal(stk_bench_pair_interval(NULL, 0, 0.95, &none), STK_OK);
    assert_true(isnan(none.value));
    double five[] = {1, 2, 3, 4, 5}; /* the least tail is 1/32 on each side */
    assert_int_equal(stk_bench_pair_interval(five, 5, 0.95, &none), STK_OK);
    assert_near(none.value, 3);
    assert_true(isnan(none.low));
}

/* Above 60 pairs a normal curve stands for the exact table; at 60 both are there, and must nearly agree. */
static void test_many_pairs(void **state)
{
    (void)state;
    double d[61];
    for (int i = 0; i < 61; i++)
        d[i] = (double)i - 20;
    stk_bench_interval exact, normal;
    assert_int_equal(stk_bench_pair_interval(d, 60, 0.95, &exact), STK_OK);
    assert_int_equal(stk_bench_pair_interval(d, 61, 0.95, &normal), STK_OK);
    assert_true(fabs(normal.low - exact.low - 0.5) < 0.3 && fabs(normal.high - exact.high - 0.5) < 0.3);
    assert_near(exact.value, 9.5);
}

static void test_effect(void **state)
{
    (void)state;
    double a[] = {1, 2, 3}, b[] = {2, 3, 4};
    /* b < a: (2 < 3); equal: (2, 2), (3, 3). */
    assert_near(stk_bench_share_less(a, 3, b, 3), 2.0 / 9);
    assert_near(stk_bench_share_less(a, 3, a, 3), 0.5);
    assert_true(isnan(stk_bench_share_less(a, 0, b, 3)));
}

static void test_trend(void **state)
{
    (void)state;
    double chance, slope, x[10];
    for (int i = 0; i < 10; i++)
        x[i] = 100 + i;
    assert_int_equal(stk_bench_trend(x, 10, &chance, &slope), STK_OK);
    /* S = 45, variance 125: z = 44 / 11.18 = 3.935, two-sided 8.3e-5. */
    assert_true(fabs(chance - 8.303e-5) < 1e-7);
    assert_near(slope, 9 / 104.5);
    double level[] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
    assert_int_equal(stk_bench_trend(level, 10, &chance, &slope), STK_OK);
    assert_true(chance > 0.3);
    double same[8] = {5, 5, 5, 5, 5, 5, 5, 5};
    assert_int_equal(stk_bench_trend(same, 8, &chance, &slope), STK_OK);
    assert_near(chance, 1);
    assert_near(slope, 0);
    assert_int_equal(stk_bench_trend(x, 7, &chance, &slope), STK_OK);
    assert_near(chance, 1);
}

static void test_further_runs(void **state)
{
    (void)state;
    assert_int_equal(stk_bench_further_runs(10, 2, 1), 30);
    assert_int_equal(stk_bench_further_runs(10, 1, 1), 0);
    assert_int_equal(stk_bench_further_runs(10, NAN, 1), -1);
    assert_int_equal(stk_bench_further_runs(10, 1, 0), -1);
}

/* The bootstrap's distribution of the median of 5 is known: of n = 5 draws at least 3 are among the k smallest with
 * P(Binomial(5, k/5) >= 3), which is 0.0579 for k = 1 and 0.317 for k = 2. So 2.5 % lies in the smallest number, and
 * 25 % in the second one. */
static void test_bootstrap_of_five(void **state)
{
    (void)state;
    double x[] = {50, 10, 40, 20, 30};
    stk_bench_interval found;
    assert_int_equal(stk_bench_median_interval(x, 5, 0.95, 1, &found), STK_OK);
    assert_near(found.value, 30);
    assert_near(found.low, 10);
    assert_near(found.high, 50);
    assert_int_equal(stk_bench_median_interval(x, 5, 0.5, 1, &found), STK_OK);
    assert_near(found.low, 20);
    assert_near(found.high, 40);
    assert_int_equal(stk_bench_median_interval(x, 4, 0.95, 1, &found), STK_OK);
    assert_near(found.value, 30);
    assert_true(isnan(found.low));
    double same[] = {3, 3, 3, 3, 3, 3};
    assert_int_equal(stk_bench_median_interval(same, 6, 0.95, 1, &found), STK_OK);
    assert_near(found.low, 3);
    assert_near(found.high, 3);
}

/* Times as machines give them: a floor, and a tail to one side. */
static double draw_time(stk_rng *rng)
{
    return 100 * exp(0.02 * (double)stk_rng_normal(rng)) + (stk_rng_uniform(rng) < 0.05f ? 10 : 0);
}

/* The long-run median of such times, by a million of them, which is what intervals have to hold. */
static double long_run_median(void)
{
    enum { N = 400001 };
    double *x = malloc(N * sizeof(double));
    assert_non_null(x);
    stk_rng rng = stk_rng_make(7, 7, 7, 7);
    for (int i = 0; i < N; i++)
        x[i] = draw_time(&rng);
    stk_bench_sort(x, N);
    double middle = x[N / 2];
    free(x);
    return middle;
}

static void test_coverage_of_medians(void **state)
{
    (void)state;
    enum { TRIES = 1000, MOST = 40 };
    static const int sizes[] = {10, 15, MOST};
    double truth = long_run_median();
    for (int s = 0; s < 3; s++) {
        int n_held = 0;
        for (int t = 0; t < TRIES; t++) {
            double x[MOST];
            stk_rng rng = stk_rng_make(1, 2, (uint64_t)t, 3);
            for (int i = 0; i < sizes[s]; i++)
                x[i] = draw_time(&rng);
            stk_bench_interval found;
            assert_int_equal(stk_bench_median_interval(x, sizes[s], 0.95, (uint64_t)t, &found), STK_OK);
            n_held += found.low <= truth && truth <= found.high;
        }
        print_message("coverage of medians of %d: %.1f %%\n", sizes[s], 100.0 * n_held / TRIES);
        assert_in_range(n_held, 943, 972);
    }
}

/* Runs that hang together (a neighbour that stays for a while): without blocks the interval is far too narrow. */
static void test_coverage_of_runs_that_hang_together(void **state)
{
    (void)state;
    enum { TRIES = 500, N = 100 };
    int n_held = 0;
    for (int t = 0; t < TRIES; t++) {
        double x[N], level = 0;
        stk_rng rng = stk_rng_make(1, 2, (uint64_t)t, 4);
        for (int i = -50; i < N; i++) {
            level = 0.6 * level + (double)stk_rng_normal(&rng);
            if (i >= 0) x[i] = 100 + level;
        }
        int block;
        assert_int_equal(stk_bench_block_length(x, N, &block), STK_OK);
        stk_bench_interval found;
        assert_int_equal(stk_bench_median_interval(x, N, 0.95, (uint64_t)t, &found), STK_OK);
        n_held += found.low <= 100 && 100 <= found.high;
    }
    print_message("coverage where runs hang together: %.1f %%\n", 100.0 * n_held / TRIES);
    assert_true(n_held >= TRIES * 85 / 100);
}

static void test_pairs_without_a_difference(void **state)
{
    (void)state;
    enum { TRIES = 2000, N = 15 };
    int n_wrong = 0, n_told = 0;
    for (int t = 0; t < TRIES; t++) {
        double none[N], some[N];
        stk_rng rng = stk_rng_make(1, 2, (uint64_t)t, 5);
        for (int i = 0; i < N; i++) {
            double level = (double)stk_rng_normal(&rng); /* both runs of a round share it */
            none[i] = log((draw_time(&rng) + level) / (draw_time(&rng) + level));
            some[i] = none[i] + log(1.05);
        }
        stk_bench_interval found;
        assert_int_equal(stk_bench_pair_interval(none, N, 0.99, &found), STK_OK);
        n_wrong += found.low > 0 || found.high < 0;
        assert_int_equal(stk_bench_pair_interval(some, N, 0.99, &found), STK_OK);
        n_told += found.low > 0;
    }
    print_message("a difference that is none: %.2f %%; one of 5 %%: %.1f %%\n", 100.0 * n_wrong / TRIES,
                  100.0 * n_told / TRIES);
    assert_true(n_wrong <= TRIES * 2 / 100);
    assert_true(n_told >= TRIES * 85 / 100);
}

static void test_ratio(void **state)
{
    (void)state;
    double a[30], b[30];
    stk_rng rng = stk_rng_make(3, 1, 4, 1);
    for (int i = 0; i < 30; i++) {
        a[i] = 100 + (double)stk_rng_normal(&rng);
        b[i] = 110 + (double)stk_rng_normal(&rng);
    }
    stk_bench_interval found;
    assert_int_equal(stk_bench_ratio_interval(a, 30, b, 30, 0.95, 1, &found), STK_OK);
    assert_true(found.low > 0.08 && found.low < 0.1 && found.high > 0.1 && found.high < 0.12);
    assert_int_equal(stk_bench_ratio_interval(a, 30, b, 4, 0.95, 1, &found), STK_OK);
    assert_true(isnan(found.low) && found.value > 0.05);
}

static void test_entropy(void **state)
{
    (void)state;
    enum { N = 2000 };
    static double x[N], y[N];
    bool steady;
    stk_rng rng = stk_rng_make(9, 1, 4, 1);
    for (int i = 0; i < N; i++) {
        x[i] = 100 + 3 * (double)stk_rng_normal(&rng);
        y[i] = 100 + 0.1 * i; /* always another one */
    }
    assert_int_equal(stk_bench_entropy_is_steady(x, 8, 2, &steady), STK_OK);
    assert_false(steady);
    int from = 0;
    for (int n = 2; n <= N && !from; n += 2) {
        assert_int_equal(stk_bench_entropy_is_steady(x, n, 2, &steady), STK_OK);
        if (steady) from = n;
    }
    print_message("scatter of 3 %% in bins of 2 %%: steady from %d runs on\n", from);
    assert_true(from >= 10 && from < N);
    assert_int_equal(stk_bench_entropy_is_steady(y, N / 4, 2, &steady), STK_OK);
    assert_false(steady);
    for (int i = 0; i < N; i++)
        y[i] = 100;
    assert_int_equal(stk_bench_entropy_is_steady(y, 10, 2, &steady), STK_OK);
    assert_true(steady);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_many_pairs),
        cmocka_unit_test(test_effect),
        cmocka_unit_test(test_trend),
        cmocka_unit_test(test_further_runs),
        cmocka_unit_test(test_bootstrap_of_five),
        cmocka_unit_test(test_coverage_of_medians),
        cmocka_unit_test(test_coverage_of_runs_that_hang_together),
        cmocka_unit_test(test_pairs_without_a_difference),
        cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_entropy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

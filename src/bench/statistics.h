/* Statistics of repeated runs: pure functions of arrays of finite numbers, for everything that a benchmark says. They
 * measure nothing and know no units.
 *
 * Median and quartiles: Hyndman and Fan 1996, definition 7. Interval of a median: percentile bootstrap (Efron and
 * Tibshirani 1993, ch. 13) of circular blocks (Politis and Romano 1992), whose length follows from the runs' own
 * correlation, as in an AR(1) process (Carlstein 1986), and no narrower than that of the ranks (Hettmansperger and
 * Sheather 1986), since the bootstrap of 15 numbers holds 93 % where 95 % are said. Pairs: Hodges and Lehmann's
 * estimate with the interval of Wilcoxon's signed ranks (Hollander and Wolfe 1999, ch. 3). Trend: Mann 1945, Kendall
 * 1975. Outliers: Tukey's fences. Threads: any.
 */
#ifndef STK_BENCH_STATISTICS_H
#define STK_BENCH_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"

enum { STK_BENCH_LEAST_RUNS = 5, STK_BENCH_RESAMPLES = 4000 };

/* An estimate and what it may be. low and high are NaN where there are too few numbers to tell. */
typedef struct stk_bench_interval {
    double value, low, high;
} stk_bench_interval;

void stk_bench_sort(double *x, int n);
/* Of sorted numbers; share from 0 to 1. n >= 1. */
double stk_bench_quantile(const double *sorted, int n, double share);

/* x  [n], in the order in which they were measured. seed: of the resamples; the same gives the same interval.
 * confidence: as 0.95. Fewer than STK_BENCH_LEAST_RUNS numbers have no interval. Errors: STK_NO_MEMORY. */
stk_status stk_bench_median_interval(const double *x, int n, double confidence, uint64_t seed, stk_bench_interval *out);
/* The same for median(b) / median(a) - 1 of two sets that were not measured in pairs; positive numbers only. */
stk_status stk_bench_ratio_interval(const double *a, int n_a, const double *b, int n_b, double confidence,
                                    uint64_t seed, stk_bench_interval *out);
/* Of the centre of differences of pairs, d [n]. NaN bounds where n is too small for that confidence: 95 % takes 6. */
stk_status stk_bench_pair_interval(const double *d, int n, double confidence, stk_bench_interval *out);

/* How many runs in a row hang together: 1 for independent ones. x [n], in order. Errors: STK_NO_MEMORY. */
stk_status stk_bench_block_length(const double *x, int n, int *out);

/* Numbers outside low..high are outliers: further than 1.5 interquartile ranges from the quartiles. */
void stk_bench_fences(const double *sorted, int n, double *low, double *high);

/* Effect size: the share of pairs (a, b) in which b is less, ties counting half (Vargha and Delaney 2000). 0.5: none.
 */
double stk_bench_share_less(const double *a, int n_a, const double *b, int n_b);

/* How likely a trend like that is by chance in numbers without one, two-sided; 1 for fewer than 8. *slope_share:
 * Theil's and Sen's slope over all n, as a share of the median. Errors: STK_NO_MEMORY. */
stk_status stk_bench_trend(const double *x, int n, double *chance, double *slope_share);

/* Whether further runs would tell little that is new of how x [n], in order, is distributed: the entropy of all runs
 * until each one, in bins of that width, no longer grows. As NVBench's criterion: a line through the last 299 entropies
 * rises by less than 0.048 degrees a run and explains 36 % of their variance; NVBench counts equal times, of a clock
 * with a step, where there are bins here. Fewer than 10 are not
 * steady. Errors: STK_NO_MEMORY. */
stk_status stk_bench_entropy_is_steady(const double *x, int n, double bin, bool *out);

/* Further runs after which an interval of this half width, from n runs, would have the target's: widths fall with the
 * root of the number. 0: it has already; -1: cannot be told. */
int64_t stk_bench_further_runs(int n, double half_width, double target);

#endif

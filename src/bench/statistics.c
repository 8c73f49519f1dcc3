#include "bench/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "stoker/rng.h"

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stk_bench_sort(double *x, int n)
{
    if (n > 1) qsort(x, (size_t)n, sizeof(*x), compare_numbers);
}

double stk_bench_quantile(const double *sorted, int n, double share)
{
    double at = share * (double)(n - 1);
    int i = (int)at;
    if (i >= n - 1) return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* A sorted copy, with room for n_more numbers behind it. */
static stk_status sort_copy(const double *x, int n, size_t n_more, double **out)
{
    size_t bytes = ((size_t)n + n_more) * sizeof(double);
    *out = malloc(bytes ? bytes : 1);
    if (!*out) return stk_fail_memory(bytes);
    memcpy(*out, x, (size_t)n * sizeof(double));
    stk_bench_sort(*out, n);
    return STK_OK;
}

/* --- the bootstrap --- */

/* What resamples are drawn from: sorted numbers, and the place among them of each, in the order measured. */
typedef struct pool {
    double *sorted;
    int *rank, *count;
    int n, block;
} pool;

static void free_pool(pool *p)
{
    free(p->sorted);
    free(p->rank);
    free(p->count);
}

/* Equal numbers take places one after the other, each once. */
static void rank_all(const double *x, pool *p)
{
    for (int i = 0; i < p->n; i++)
        p->count[i] = 0;
    for (int i = 0; i < p->n; i++) {
        const double *at = bsearch(&x[i], p->sorted, (size_t)p->n, sizeof(double), compare_numbers);
        int k = at ? (int)(at - p->sorted) : 0;
        while (k > 0 && p->sorted[k - 1] == x[i])
            k--;
        p->rank[i] = k + p->count[k]++;
    }
}

static stk_status open_pool(const double *x, int n, pool *p)
{
    memset(p, 0, sizeof(*p));
    p->n = n;
    STK_RETURN_IF_ERROR(sort_copy(x, n, 0, &p->sorted));
    p->rank = malloc((size_t)n * sizeof(int));
    p->count = malloc((size_t)n * sizeof(int));
    if (!p->rank || !p->count) return stk_fail_memory((size_t)n * sizeof(int));
    rank_all(x, p);
    return stk_bench_block_length(x, n, &p->block);
}

/* The median of one resample. */
static double draw_median(pool *p, stk_rng *rng)
{
    int n = p->n, below = (n - 1) / 2, seen = 0;
    memset(p->count, 0, (size_t)n * sizeof(int));
    for (int i = 0; i < n;) {
        int from = (int)stk_rng_below(rng, (uint32_t)n);
        for (int k = 0; k < p->block && i < n; k++, i++)
            p->count[p->rank[(from + k) % n]]++;
    }
    int k = 0;
    while ((seen += p->count[k]) <= below)
        k++;
    double median = p->sorted[k];
    if (n % 2) return median;
    if (seen > below + 1) return median;
    for (k++; !p->count[k];)
        k++;
    return 0.5 * (median + p->sorted[k]);
}

static void take_percentiles(double *drawn, double confidence, stk_bench_interval *out)
{
    stk_bench_sort(drawn, STK_BENCH_RESAMPLES);
    out->low = stk_bench_quantile(drawn, STK_BENCH_RESAMPLES, 0.5 * (1 - confidence));
    out->high = stk_bench_quantile(drawn, STK_BENCH_RESAMPLES, 1 - 0.5 * (1 - confidence));
}

/* P(Binomial(n, 1/2) <= k). */
static double sign_tail(int n, int k)
{
    double sum = 0;
    for (int i = 0; i <= k; i++)
        sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * M_LN2);
    return sum;
}

/* No narrower than the numbers' own ranks say of independent ones, which the bootstrap of few numbers falls short of:
 * the interval between the d-th smallest and the d-th largest, and a part of the way to the next narrower one. */
static void widen_by_ranks(const double *sorted, int n, double confidence, stk_bench_interval *out)
{
    int d = 1;
    while (2 * (d + 1) <= n && 1 - 2 * sign_tail(n, d) >= confidence)
        d++;
    double wide = 1 - 2 * sign_tail(n, d - 1), narrow = 1 - 2 * sign_tail(n, d);
    double share = wide > confidence ? (wide - confidence) / (wide - narrow) : 0;
    double part = (n - d) * share / (d + (n - 2 * d) * share);
    out->low = fmin(out->low, (1 - part) * sorted[d - 1] + part * sorted[d]);
    out->high = fmax(out->high, (1 - part) * sorted[n - d] + part * sorted[n - d - 1]);
}

stk_status stk_bench_median_interval(const double *x, int n, double confidence, uint64_t seed, stk_bench_interval *out)
{
    pool p = {0};
    stk_status status = STK_OK;
    double *drawn = NULL;
    *out = (stk_bench_interval){NAN, NAN, NAN};
    if (n < 1) return STK_OK;
    STK_TRY(open_pool(x, n, &p));
    out->value = stk_bench_quantile(p.sorted, n, 0.5);
    if (n < STK_BENCH_LEAST_RUNS) goto done;
    drawn = malloc(STK_BENCH_RESAMPLES * sizeof(double));
    if (!drawn) STK_TRY(stk_fail_memory(STK_BENCH_RESAMPLES * sizeof(double)));
    stk_rng rng = stk_rng_make(seed, 0, 0, 0);
    for (int i = 0; i < STK_BENCH_RESAMPLES; i++)
        drawn[i] = draw_median(&p, &rng);
    take_percentiles(drawn, confidence, out);
    widen_by_ranks(p.sorted, n, confidence, out);
done:
    free(drawn);
    free_pool(&p);
    return status;
}

stk_status stk_bench_ratio_interval(const double *a, int n_a, const double *b, int n_b, double confidence,
                                    uint64_t seed, stk_bench_interval *out)
{
    pool p = {0}, q = {0};
    stk_status status = STK_OK;
    double *drawn = NULL;
    *out = (stk_bench_interval){NAN, NAN, NAN};
    if (n_a < 1 || n_b < 1) return STK_OK;
    STK_TRY(open_pool(a, n_a, &p));
    STK_TRY(open_pool(b, n_b, &q));
    out->value = stk_bench_quantile(q.sorted, n_b, 0.5) / stk_bench_quantile(p.sorted, n_a, 0.5) - 1;
    if (n_a < STK_BENCH_LEAST_RUNS || n_b < STK_BENCH_LEAST_RUNS) goto done;
    drawn = malloc(STK_BENCH_RESAMPLES * sizeof(double));
    if (!drawn) STK_TRY(stk_fail_memory(STK_BENCH_RESAMPLES * sizeof(double)));
    stk_rng first = stk_rng_make(seed, 0, 0, 0), second = stk_rng_make(seed, 0, 0, 1);
    for (int i = 0; i < STK_BENCH_RESAMPLES; i++)
        drawn[i] = draw_median(&q, &second) / draw_median(&p, &first) - 1;
    take_percentiles(drawn, confidence, out);
done:
    free(drawn);
    free_pool(&p);
    free_pool(&q);
    return status;
}

stk_status stk_bench_block_length(const double *x, int n, int *out)
{
    double *copy, product = 0, square = 0;
    *out = 1;
    if (n < 8) return STK_OK;
    STK_RETURN_IF_ERROR(sort_copy(x, n, 0, &copy));
    double middle = stk_bench_quantile(copy, n, 0.5), before = 0;
    free(copy);
    /* Of the signs alone, since these are what moves a median, and no outlier hides it. */
    for (int i = 0; i < n; i++) {
        double sign = (double)((x[i] > middle) - (x[i] < middle));
        product += i ? sign * before : 0;
        square += sign * sign;
        before = sign;
    }
    double r = square > 0 ? product / square : 0;
    if (r * sqrt((double)n) < 2) return STK_OK;
    if (r > 0.95) r = 0.95;
    double length = ceil(pow(2 * r / (1 - r * r), 2.0 / 3) * cbrt((double)n));
    *out = length > n / 3 ? n / 3 : length < 1 ? 1 : (int)length;
    return STK_OK;
}

/* --- pairs --- */

enum { MOST_EXACT = 60, MOST_PAIRS = 2000 };

/* The greatest w with P(W <= w) <= tail, W the sum of the ranks of n signs by chance; -1: there is none. */
static int64_t signed_rank_limit(int n, double tail)
{
    double ways[MOST_EXACT * (MOST_EXACT + 1) / 2 + 1] = {1}, sum = 0, all = ldexp(1, n);
    if (n > MOST_EXACT) {
        double mean = (double)n * (n + 1) / 4, deviation = sqrt((double)n * (n + 1) * (2.0 * n + 1) / 24);
        double low = 0, high = 10; /* where a normal variate has that tail */
        for (int i = 0; i < 60; i++) {
            double middle = 0.5 * (low + high);
            *(0.5 * erfc(middle * M_SQRT1_2) > tail ? &low : &high) = middle;
        }
        return (int64_t)floor(mean - low * deviation - 0.5);
    }
    int most = n * (n + 1) / 2;
    for (int rank = 1; rank <= n; rank++)
        for (int w = rank * (rank + 1) / 2; w >= rank; w--)
            ways[w] += ways[w - rank];
    for (int w = 0; w <= most; w++) {
        sum += ways[w];
        if (sum > tail * all) return w - 1;
    }
    return most;
}

stk_status stk_bench_pair_interval(const double *d, int n, double confidence, stk_bench_interval *out)
{
    *out = (stk_bench_interval){NAN, NAN, NAN};
    if (n < 1) return STK_OK;
    if (n > MOST_PAIRS) return stk_fail(STK_INVALID, "%d pairs are more than the %d that are compared", n, MOST_PAIRS);
    int64_t n_means = (int64_t)n * (n + 1) / 2, k = 0;
    double *mean = malloc((size_t)n_means * sizeof(double));
    if (!mean) return stk_fail_memory((size_t)n_means * sizeof(double));
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++)
            mean[k++] = 0.5 * (d[i] + d[j]);
    stk_bench_sort(mean, (int)n_means);
    out->value = stk_bench_quantile(mean, (int)n_means, 0.5);
    int64_t limit = signed_rank_limit(n, 0.5 * (1 - confidence));
    if (limit >= 0) {
        out->low = mean[limit];
        out->high = mean[n_means - 1 - limit];
    }
    free(mean);
    return STK_OK;
}

/* --- single figures --- */

void stk_bench_fences(const double *sorted, int n, double *low, double *high)
{
    double first = stk_bench_quantile(sorted, n, 0.25), third = stk_bench_quantile(sorted, n, 0.75);
    *low = first - 1.5 * (third - first);
    *high = third + 1.5 * (third - first);
}

double stk_bench_share_less(const double *a, int n_a, const double *b, int n_b)
{
    double sum = 0;
    if (n_a < 1 || n_b < 1) return NAN;
    for (int i = 0; i < n_a; i++)
        for (int k = 0; k < n_b; k++)
            sum += b[k] < a[i] ? 1 : b[k] == a[i] ? 0.5 : 0;
    return sum / ((double)n_a * n_b);
}

stk_status stk_bench_trend(const double *x, int n, double *chance, double *slope_share)
{
    double sum = 0, *slope, ties = 0;
    *chance = 1;
    *slope_share = 0;
    if (n < 8) return STK_OK;
    if (n > MOST_PAIRS) {
        x += n - MOST_PAIRS;
        n = MOST_PAIRS;
    }
    size_t n_slopes = (size_t)n * (size_t)(n - 1) / 2, k = 0;
    STK_RETURN_IF_ERROR(sort_copy(x, n, n_slopes, &slope));
    double middle = stk_bench_quantile(slope, n, 0.5);
    for (int i = 0, same = 1; i < n; i += same, same = 1) {
        while (i + same < n && slope[i + same] == slope[i])
            same++;
        ties += (double)same * (same - 1) * (2.0 * same + 5);
    }
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            sum += (double)((x[j] > x[i]) - (x[j] < x[i]));
            slope[k++] = (x[j] - x[i]) / (double)(j - i);
        }
    }
    stk_bench_sort(slope, (int)n_slopes);
    double variance = ((double)n * (n - 1) * (2.0 * n + 5) - ties) / 18;
    double z = variance > 0 ? (fabs(sum) - (sum != 0)) / sqrt(variance) : 0;
    *chance = erfc(z * M_SQRT1_2);
    if (middle != 0) *slope_share = stk_bench_quantile(slope, (int)n_slopes, 0.5) * (double)(n - 1) / fabs(middle);
    free(slope);
    return STK_OK;
}

/* --- entropy --- */

/* entropy[i]: in bits, of x[0..i] in bins. */
static void entropies(const double *x, int n, double bin, double *entropy)
{
    double sum = 0; /* of c log2 c over all bins */
    for (int i = 0; i < n; i++) {
        double same = 0;
        for (int k = 0; k < i; k++)
            same += floor(x[k] / bin) == floor(x[i] / bin);
        sum += (same + 1) * log2(same + 1) - (same > 0 ? same * log2(same) : 0);
        entropy[i] = log2(i + 1.0) - sum / (i + 1.0);
    }
}

/* The line through y over 0, 1, ...: its slope, and the share of y's variance that it explains. */
static void fit_line(const double *y, int n, double *slope, double *share)
{
    double mean = 0, xy = 0, xx = 0, yy = 0, middle = 0.5 * (n - 1);
    for (int i = 0; i < n; i++)
        mean += y[i] / n;
    for (int i = 0; i < n; i++) {
        xy += (i - middle) * (y[i] - mean);
        xx += (i - middle) * (i - middle);
        yy += (y[i] - mean) * (y[i] - mean);
    }
    *slope = xy / xx;
    *share = yy > 1e-18 * n ? xy * xy / (xx * yy) : 1; /* less is rounding */
}

stk_status stk_bench_entropy_is_steady(const double *x, int n, double bin, bool *out)
{
    enum { WINDOW = 299, LEAST = 10 };
    static const double MOST_DEGREES = 0.048, LEAST_SHARE = 0.36;
    double slope, share, *entropy;
    *out = false;
    if (n < LEAST || !(bin > 0)) return STK_OK;
    entropy = malloc((size_t)n * sizeof(*entropy));
    if (!entropy) return stk_fail_memory((size_t)n * sizeof(*entropy));
    entropies(x, n, bin, entropy);
    int first = n > WINDOW ? n - WINDOW : 0;
    fit_line(entropy + first, n - first, &slope, &share);
    free(entropy);
    *out = atan(slope) * 180 / M_PI <= MOST_DEGREES && share >= LEAST_SHARE;
    return STK_OK;
}

int64_t stk_bench_further_runs(int n, double half_width, double target)
{
    if (!isfinite(half_width) || !(target > 0) || n < 1) return -1;
    if (half_width <= target) return 0;
    double more = ceil((double)n * (half_width / target) * (half_width / target)) - (double)n;
    return more > 1e9 ? -1 : (int64_t)more;
}

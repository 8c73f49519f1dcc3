/* What the runs of a measuring say: which count, and the figures of each case. See bench/measure.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/measure.h"

/* A clock that differs by more from the median of all runs is another one. */
static const double CLOCK_SHARE = 0.1;
/* A trend that shows: by chance in one of a hundred, and more than this share of the median from first to last. */
static const double TREND_CHANCE = 0.01, TREND_SHARE = 0.005;

typedef double (*field_of)(const stk_bench_run *run);

static double get_figure(const stk_bench_run *run)
{
    return run->figure;
}
static double get_wall(const stk_bench_run *run)
{
    return run->wall_s;
}
static double get_user(const stk_bench_run *run)
{
    return run->user_s;
}
static double get_system(const stk_bench_run *run)
{
    return run->system_s;
}
static double get_joules(const stk_bench_run *run)
{
    return run->joules;
}
static double get_gpu_joules(const stk_bench_run *run)
{
    return run->gpu_joules;
}
static double get_blocks(const stk_bench_run *run)
{
    return (double)run->n_blocks_read;
}
static double get_faults(const stk_bench_run *run)
{
    return (double)run->n_major_faults;
}
static double get_probe(const stk_bench_run *run)
{
    return run->during.probe_ns;
}
static double get_mhz(const stk_bench_run *run)
{
    return run->during.mhz > 0 ? run->during.mhz : NAN;
}

/* Those of the case's runs that count (or, with all, of all but the warm-up's), in their order; returns how many. */
static int gather(const stk_bench_case *c, field_of get, bool all, double *out)
{
    int n = 0;
    for (int i = 0; i < c->n_runs; i++)
        if ((all ? !c->run[i].is_warmup : c->run[i].is_counted) && isfinite(get(&c->run[i])))
            out[n++] = get(&c->run[i]);
    return n;
}

/* NaN where there are none. Sorts scratch. */
static double median_of(const stk_bench_case *c, field_of get, bool all, double *scratch)
{
    int n = gather(c, get, all, scratch);
    stk_bench_sort(scratch, n);
    return n ? stk_bench_quantile(scratch, n, 0.5) : NAN;
}

/* Of the runs that count. */
static double median_of_metric(const stk_bench_case *c, int i_metric, double *scratch)
{
    int n = 0;
    for (int i = 0; i < c->n_runs; i++)
        if (c->run[i].is_counted && isfinite(c->run[i].metric[i_metric])) scratch[n++] = c->run[i].metric[i_metric];
    stk_bench_sort(scratch, n);
    return n ? stk_bench_quantile(scratch, n, 0.5) : NAN;
}

/* Of all cases' runs. */
static double median_of_all(const stk_bench *bench, field_of get, double *scratch)
{
    int n = 0;
    for (int i = 0; i < bench->n_cases; i++)
        n += gather(&bench->cases[i], get, true, scratch + n);
    stk_bench_sort(scratch, n);
    return n ? stk_bench_quantile(scratch, n, 0.5) : NAN;
}

/* What other runs are needed for: clocks, and files that had to be read. */
static void mark_by_others(stk_bench *bench, double *scratch)
{
    double probe = median_of_all(bench, get_probe, scratch), mhz = median_of_all(bench, get_mhz, scratch);
    for (int i = 0; i < bench->n_cases; i++) {
        stk_bench_case *c = &bench->cases[i];
        double blocks = median_of(c, get_blocks, true, scratch), faults = median_of(c, get_faults, true, scratch);
        for (int k = 0; k < c->n_runs; k++) {
            stk_bench_run *run = &c->run[k];
            run->marks &= ~(unsigned)(STK_BENCH_MARK_clock | STK_BENCH_MARK_cold);
            if (fabs(run->during.probe_ns / probe - 1) > CLOCK_SHARE || fabs(get_mhz(run) / mhz - 1) > CLOCK_SHARE)
                run->marks |= STK_BENCH_MARK_clock;
            if ((double)run->n_blocks_read > 4 * blocks + 64 || (double)run->n_major_faults > 4 * faults + 4)
                run->marks |= STK_BENCH_MARK_cold;
        }
    }
}

/* A round counts where none of its runs is marked, so that pairs stay pairs. */
static stk_status choose_rounds(stk_bench *bench)
{
    int n_marked = 0;
    bool *is_marked = calloc((size_t)bench->n_rounds + 1, sizeof(bool));
    if (!is_marked) return stk_fail_memory((size_t)bench->n_rounds + 1);
    for (int i = 0; i < bench->n_cases; i++)
        for (int k = 0; k < bench->cases[i].n_runs; k++) {
            const stk_bench_run *run = &bench->cases[i].run[k];
            if (run->round >= 0 && run->round < bench->n_rounds && run->marks) is_marked[run->round] = true;
        }
    for (int i = 0; i < bench->n_rounds; i++)
        n_marked += is_marked[i];
    bench->is_disturbed = 2 * n_marked > bench->n_rounds || bench->n_rounds - n_marked < STK_BENCH_LEAST_RUNS;
    bench->is_disturbed = bench->is_disturbed && n_marked > 0;
    bool all = bench->is_disturbed || bench->plan.counts_marked;
    for (int i = 0; i < bench->n_cases; i++)
        for (int k = 0; k < bench->cases[i].n_runs; k++) {
            stk_bench_run *run = &bench->cases[i].run[k];
            run->is_counted = run->round >= 0 && run->round < bench->n_rounds && (all || !is_marked[run->round]);
        }
    free(is_marked);
    return STK_OK;
}

static void describe_spread(stk_bench_summary *s, const double *sorted, int n)
{
    double sum = 0, square = 0;
    for (int i = 0; i < n; i++)
        sum += sorted[i];
    s->mean = sum / n;
    for (int i = 0; i < n; i++)
        square += (sorted[i] - s->mean) * (sorted[i] - s->mean);
    s->deviation = n > 1 ? sqrt(square / (n - 1)) : NAN;
    s->least = sorted[0];
    s->most = sorted[n - 1];
    s->first_quartile = stk_bench_quantile(sorted, n, 0.25);
    s->third_quartile = stk_bench_quantile(sorted, n, 0.75);
    stk_bench_fences(sorted, n, &s->low_fence, &s->high_fence);
}

static void count_runs(stk_bench_case *c)
{
    stk_bench_summary *s = &c->summary;
    for (int i = 0; i < c->n_runs; i++) {
        stk_bench_run *run = &c->run[i];
        s->n_warmup += run->is_warmup;
        if ((double)run->resident_kb > s->resident_kb) s->resident_kb = (double)run->resident_kb;
        run->is_outlier = run->is_counted && s->n > 3 && (run->figure < s->low_fence || run->figure > s->high_fence);
        s->n_outliers += run->is_outlier;
        if (run->is_warmup) continue;
        s->n_marked += run->marks != 0;
        s->marks |= run->marks;
        for (int k = 0; k < STK_BENCH_N_MARKS; k++)
            s->n_marks[k] += (int)(run->marks >> k & 1u);
    }
}

static stk_status summarise_case(const stk_bench_plan *plan, stk_bench_case *c, double *scratch)
{
    stk_bench_summary *s = &c->summary;
    memset(s, 0, sizeof(*s));
    s->first_s = c->n_runs ? c->run[0].wall_s : NAN;
    s->wall_s = median_of(c, get_wall, false, scratch);
    s->user_s = median_of(c, get_user, false, scratch);
    s->system_s = median_of(c, get_system, false, scratch);
    s->joules = median_of(c, get_joules, false, scratch);
    s->gpu_joules = median_of(c, get_gpu_joules, false, scratch);
    for (int i = 0; i < STK_BENCH_N_METRICS; i++)
        s->metric[i] = median_of_metric(c, i, scratch);
    s->n = gather(c, get_figure, false, scratch);
    STK_RETURN_IF_ERROR(stk_bench_median_interval(scratch, s->n, 0.95, plan->seed, &s->median));
    STK_RETURN_IF_ERROR(stk_bench_block_length(scratch, s->n, &s->block));
    STK_RETURN_IF_ERROR(stk_bench_trend(scratch, s->n, &s->trend_chance, &s->trend_share));
    s->has_trend = s->trend_chance < TREND_CHANCE && fabs(s->trend_share) > TREND_SHARE;
    s->n_further =
        stk_bench_further_runs(s->n, 0.5 * (s->median.high - s->median.low), plan->precision * s->median.value);
    if (s->n) {
        stk_bench_sort(scratch, s->n);
        describe_spread(s, scratch, s->n);
    }
    count_runs(c);
    return STK_OK;
}

stk_status stk_bench_summarise(stk_bench *bench)
{
    size_t n = 1;
    for (int i = 0; i < bench->n_cases; i++)
        n += (size_t)bench->cases[i].n_runs;
    double *scratch = malloc(n * sizeof(double));
    stk_status status = STK_OK;
    if (!scratch) return stk_fail_memory(n * sizeof(double));
    mark_by_others(bench, scratch);
    STK_TRY(choose_rounds(bench));
    for (int i = 0; i < bench->n_cases; i++)
        STK_TRY(summarise_case(&bench->plan, &bench->cases[i], scratch));
done:
    free(scratch);
    return status;
}

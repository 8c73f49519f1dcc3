/* Which of two is better, or that nobody can tell. See bench/measure.h.
 *
 * It is said where the 99 % interval of the change leaves out 0 (measured apart: the allowance, too); the 95 % interval
 * is what is shown. So one in a hundred of comparisons without a difference names one, and not one in twenty. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "bench/measure.h"

static const double SHOWN = 0.95, DECIDED = 0.99;

/* Of logarithms, so that b compared with a and a compared with b say the same. */
static void to_shares(stk_bench_interval *i)
{
    i->value = expm1(i->value);
    i->low = expm1(i->low);
    i->high = expm1(i->high);
}

static void decide(bool less_is_better, double allowance, stk_bench_comparison *c)
{
    int direction = c->decision.low > allowance ? 1 : c->decision.high < -allowance ? -1 : 0;
    double half_width = 0.5 * (c->decision.high - c->decision.low), distance = fabs(c->decision.value) - allowance;
    c->verdict = less_is_better ? -direction : direction;
    c->n_further = c->verdict ? 0 : distance > 0 ? stk_bench_further_runs(c->n, half_width, distance) : -1;
}

/* The figures of the rounds in which both count. Returned: free(). NULL: out of memory. */
static double *gather_pairs(const stk_bench_case *a, const stk_bench_case *b, int *n)
{
    size_t most = (size_t)a->n_runs + 1;
    double *figures = malloc(3 * most * sizeof(double));
    *n = 0;
    for (int i = 0, k = 0; figures && i < a->n_runs; i++) {
        if (!a->run[i].is_counted) continue;
        while (k < b->n_runs && (!b->run[k].is_counted || b->run[k].round < a->run[i].round))
            k++;
        if (k == b->n_runs || b->run[k].round != a->run[i].round) continue;
        figures[*n] = a->run[i].figure;
        figures[most + (size_t)*n] = b->run[k].figure;
        figures[2 * most + (size_t)(*n)++] = log(b->run[k].figure / a->run[i].figure);
    }
    return figures;
}

stk_status stk_bench_compare_pairs(const stk_bench *bench, int i_a, int i_b, stk_bench_comparison *out)
{
    const stk_bench_case *a = &bench->cases[i_a], *b = &bench->cases[i_b];
    size_t most = (size_t)a->n_runs + 1;
    stk_status status = STK_OK;
    *out = (stk_bench_comparison){.a = i_a, .b = i_b, .is_paired = true};
    double *figures = gather_pairs(a, b, &out->n);
    if (!figures) return stk_fail_memory(3 * most * sizeof(double));
    double share = stk_bench_share_less(figures, out->n, figures + most, out->n);
    out->share_better = a->less_is_better ? share : 1 - share;
    STK_TRY(stk_bench_pair_interval(figures + 2 * most, out->n, SHOWN, &out->change));
    STK_TRY(stk_bench_pair_interval(figures + 2 * most, out->n, DECIDED, &out->decision));
    to_shares(&out->change);
    to_shares(&out->decision);
    decide(a->less_is_better, 0, out);
done:
    free(figures);
    return status;
}

stk_status stk_bench_compare_apart(const double *a, int n_a, const double *b, int n_b, bool less_is_better,
                                   double allowance, stk_bench_comparison *out)
{
    *out = (stk_bench_comparison){.n = n_a < n_b ? n_a : n_b};
    double share = stk_bench_share_less(a, n_a, b, n_b);
    out->share_better = less_is_better ? share : 1 - share;
    STK_RETURN_IF_ERROR(stk_bench_ratio_interval(a, n_a, b, n_b, SHOWN, 1, &out->change));
    STK_RETURN_IF_ERROR(stk_bench_ratio_interval(a, n_a, b, n_b, DECIDED, 1, &out->decision));
    decide(less_is_better, allowance, out);
    return STK_OK;
}

const char *stk_bench_verdict_name(int verdict)
{
    return verdict > 0 ? "better" : verdict < 0 ? "worse" : "no difference shown";
}

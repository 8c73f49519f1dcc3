/* See infer/sample.h. Candidates leave a heap in falling order, as many as the limits ask for: with top_k or top_p the
 * rest of the vocabulary is never sorted.
 */
#include "infer/sample.h"

#include <math.h>

#include "base/error.h"
#include "base/rng.h"

stk_sampling stk_sampling_default(void)
{
    return (stk_sampling){.temperature = 1, .top_p = 1};
}

stk_status stk_sampling_check(const stk_sampling *s)
{
    STK_NEED(s);
    if (!(s->temperature >= 0) || isinf(s->temperature))
        return stk_fail(STK_INVALID, "the temperature is %g, and must be 0 or more", s->temperature);
    if (s->top_k < 0) return stk_fail(STK_INVALID, "top_k is %lld, and must be 0 (all) or more", (long long)s->top_k);
    if (s->n_tokens < 0)
        return stk_fail(STK_INVALID, "n_tokens is %lld, and must be 0 (all) or more", (long long)s->n_tokens);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return stk_fail(STK_INVALID, "top_p is %g, and must be above 0 and at most 1", s->top_p);
    return STK_OK;
}

static bool is_likelier(stk_candidate a, stk_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

static void sink(stk_candidate *heap, int64_t n, int64_t i)
{
    stk_candidate top = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_likelier(heap[child + 1], heap[child])) child++;
        if (!is_likelier(heap[child], top)) break;
        heap[i] = heap[child];
    }
    heap[i] = top;
}

/* The share of a candidate among all, not yet divided by their sum. */
static double weigh(stk_candidate c, float most, double temperature)
{
    return exp(((double)c.logit - (double)most) / temperature);
}

/* Brings the candidates that the limits leave to the end of heap [n], the likeliest last; returns how many, and the sum
 * of their weights. */
static int64_t choose(stk_candidate *heap, int64_t n, const stk_sampling *s, float most, double *sum)
{
    double all = 0;
    for (int64_t i = 0; i < n; i++)
        all += weigh(heap[i], most, s->temperature);
    for (int64_t i = n / 2; i-- > 0;)
        sink(heap, n, i);
    int64_t n_chosen = 0, limit = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    *sum = 0;
    while (n_chosen < limit && (n_chosen == 0 || *sum < s->top_p * all)) {
        stk_candidate best = heap[0];
        int64_t last = n - 1 - n_chosen++;
        heap[0] = heap[last];
        heap[last] = best;
        sink(heap, last, 0);
        *sum += weigh(best, most, s->temperature);
    }
    return n_chosen;
}

/* Uniform in [0, 1), 53 bits. */
static double draw_uniform(uint64_t seed, uint64_t draw)
{
    stk_u32x4 r = stk_philox(stk_mix64(seed ^ UINT64_C(0x67656e6572617465)), 0, draw);
    return (double)((uint64_t)r.v[0] << 21 ^ r.v[1] >> 11) * 0x1p-53;
}

/* Where the running sum of weights passes `goal`, from the end of c [n] backwards. */
static int32_t walk(const stk_candidate *c, int64_t n, int64_t n_chosen, const stk_sampling *s, float most, double goal)
{
    int64_t i = n - 1;
    for (; i > n - n_chosen; i--) {
        goal -= weigh(c[i], most, s->temperature);
        if (goal < 0) break;
    }
    return c[i].token;
}

stk_status stk_sample(const float *logits, int64_t n, const stk_sampling *sampling, uint64_t draw,
                      stk_candidate *scratch, int32_t *token)
{
    STK_RETURN_IF_ERROR(stk_sampling_check(sampling));
    stk_candidate best = {logits[0], 0};
    if (sampling->n_tokens > 0 && sampling->n_tokens < n) n = sampling->n_tokens;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(logits[i])) return stk_fail(STK_CORRUPT, "the logit of token %lld is NaN", (long long)i);
        scratch[i] = (stk_candidate){logits[i], (int32_t)i};
        if (is_likelier(scratch[i], best)) best = scratch[i];
    }
    *token = best.token;
    if (sampling->temperature == 0 || isinf(best.logit)) return STK_OK;
    double u = draw_uniform(sampling->seed, draw), sum = 0;
    int64_t n_chosen = n;
    if (sampling->top_p < 1 || (sampling->top_k > 0 && sampling->top_k < n)) {
        n_chosen = choose(scratch, n, sampling, best.logit, &sum);
    } else {
        for (int64_t i = 0; i < n; i++)
            sum += weigh(scratch[i], best.logit, sampling->temperature);
    }
    *token = walk(scratch, n, n_chosen, sampling, best.logit, u * sum);
    return STK_OK;
}

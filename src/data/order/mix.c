/* See data/order/mix.h. */
#include "data/order/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"

enum { BLOCK = 64, WEIGHT_BITS = 32 };
#define MOST_COUNT ((int64_t)1 << 36)

static stk_status set_weights(const double *weights, stk_mix *mix)
{
    double most = 0;
    for (int i = 0; i < mix->n_children; i++) {
        if (!(weights[i] >= 0 && isfinite(weights[i])))
            return stk_fail(STK_INVALID, "weight %d is %g: at least 0 is needed", i + 1, weights[i]);
        most = weights[i] > most ? weights[i] : most;
    }
    if (most == 0) return stk_fail(STK_INVALID, "all weights are 0: one above 0 is needed");
    for (int i = 0; i < mix->n_children; i++) {
        mix->weight[i] = (uint64_t)(weights[i] / most * (double)((uint64_t)1 << WEIGHT_BITS));
        if (mix->weight[i] == 0 && weights[i] > 0) mix->weight[i] = 1;
    }
    return STK_OK;
}

/* The draw for a position, among those that have not ended unless the mix stops at such a one; -1: there are none. */
static int draw(const stk_mix *mix, const int64_t *taken, int64_t position)
{
    uint64_t total = 0;
    for (int i = 0; i < mix->n_children; i++)
        if (mix->stop_at_empty || taken[i] < mix->n[i]) total += mix->weight[i];
    if (total == 0) return -1;
    /* The total has at most 38 bits, so that a remainder favours none by more than 1 in 2^26. */
    uint64_t u = stk_mix64(mix->key + (uint64_t)(position + 1) * 0x9E3779B97F4A7C15u) % total;
    for (int i = 0; i < mix->n_children; i++) {
        if (!mix->stop_at_empty && taken[i] >= mix->n[i]) continue;
        if (u < mix->weight[i]) return i;
        u -= mix->weight[i];
    }
    return -1;
}

static stk_status add_block(stk_mix *mix, const int64_t *taken, int64_t *n_most)
{
    size_t n = (size_t)mix->n_children, i_block = (size_t)(mix->count / BLOCK);
    if ((int64_t)i_block == *n_most) {
        int64_t more = *n_most ? 2 * *n_most : 64;
        int64_t *grown = realloc(mix->before, (size_t)more * n * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)more * n * sizeof(*grown));
        mix->before = grown;
        *n_most = more;
    }
    memcpy(mix->before + i_block * n, taken, n * sizeof(*taken));
    return STK_OK;
}

stk_status stk_mix_make(const int64_t *counts, const double *weights, int n_children, bool stop_at_empty, uint64_t seed,
                        stk_mix *out)
{
    int64_t taken[STK_MOST_MIXED] = {0}, n_blocks = 0;
    *out = (stk_mix){.n_children = n_children, .stop_at_empty = stop_at_empty, .key = stk_mix64(seed)};
    if (n_children > STK_MOST_MIXED)
        return stk_fail(STK_INVALID, "cannot mix %d data sets: at most %d are possible", n_children, STK_MOST_MIXED);
    memcpy(out->n, counts, (size_t)n_children * sizeof(*counts));
    STK_RETURN_IF_ERROR(set_weights(weights, out));
    for (;; out->count++) {
        int i = draw(out, taken, out->count);
        if (i < 0 || taken[i] == counts[i]) break;
        if (out->count == MOST_COUNT)
            return stk_fail(STK_UNSUPPORTED,
                            "a mix of more than %lld samples is not possible: repeat it instead of "
                            "its parts",
                            (long long)MOST_COUNT);
        if (out->count % BLOCK == 0) STK_RETURN_IF_ERROR(add_block(out, taken, &n_blocks));
        taken[i]++;
    }
    if (out->count > 0) return STK_OK;
    return stk_fail(STK_INVALID, "the mix is empty");
}

void stk_mix_free(stk_mix *mix)
{
    free(mix->before);
    mix->before = NULL;
}

void stk_mix_find(const stk_mix *mix, int64_t position, int64_t *i_child, int64_t *i_in_child)
{
    int64_t taken[STK_MOST_MIXED];
    size_t n = (size_t)mix->n_children;
    memcpy(taken, mix->before + (size_t)(position / BLOCK) * n, n * sizeof(*taken));
    for (int64_t p = position / BLOCK * BLOCK;; p++) {
        int i = draw(mix, taken, p);
        if (p == position) {
            *i_child = i;
            *i_in_child = taken[i];
            return;
        }
        taken[i]++;
    }
}

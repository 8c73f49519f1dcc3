/* See train/neighbours.h. */
#include "train/neighbours.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

stk_status stk_neighbours_add(stk_neighbours *all, const float *row, const int32_t *label, int64_t n, int64_t width)
{
    if (n == 0) return STK_OK;
    if (all->n + n > all->room) {
        int64_t room = 2 * all->room + n;
        float *rows = realloc(all->row, (size_t)(room * width) * sizeof(*rows) + 1);
        if (!rows) return stk_fail_memory((size_t)(room * width) * sizeof(*rows));
        all->row = rows;
        int32_t *labels = realloc(all->label, (size_t)room * sizeof(*labels) + 1);
        if (!labels) return stk_fail_memory((size_t)room * sizeof(*labels));
        all->label = labels;
        all->room = room;
    }
    all->width = width;
    memcpy(all->row + all->n * width, row, (size_t)(n * width) * sizeof(*row));
    memcpy(all->label + all->n, label, (size_t)n * sizeof(*label));
    all->n += n;
    return STK_OK;
}

/* The square, in eight sums that a compiler can keep in one vector. */
static float distance(const float *a, const float *b, int64_t n)
{
    enum { LANES = 8 };
    float sum[LANES] = {0}, rest = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float d = a[i + l] - b[i + l];
            sum[l] += d * d;
        }
    for (; i < n; i++)
        rest += (a[i] - b[i]) * (a[i] - b[i]);
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7])) + rest;
}

/* How many rows of other labels are at least as near to row i as the nearest of its own; -1: there is none of its own.
 * to [n] is scratch. */
static int64_t count_nearer(const stk_neighbours *all, int64_t i, float *to)
{
    float nearest = INFINITY;
    bool has_own = false;
    int64_t n_nearer = 0;
    for (int64_t j = 0; j < all->n; j++) {
        to[j] = distance(all->row + i * all->width, all->row + j * all->width, all->width);
        if (j == i || all->label[j] != all->label[i]) continue;
        has_own = true;
        if (to[j] < nearest) nearest = to[j];
    }
    if (!has_own) return -1;
    for (int64_t j = 0; j < all->n; j++)
        n_nearer += all->label[j] != all->label[i] && !(to[j] > nearest);
    return n_nearer;
}

stk_status stk_neighbours_recall(const stk_neighbours *all, const int64_t *k, int n_k, double *out)
{
    int64_t n_counted = 0;
    float *to = malloc((size_t)all->n * sizeof(*to) + 1);
    if (!to) return stk_fail_memory((size_t)all->n * sizeof(*to));
    for (int i = 0; i < n_k; i++)
        out[i] = 0;
    for (int64_t i = 0; i < all->n; i++) {
        int64_t n_nearer = count_nearer(all, i, to);
        if (n_nearer < 0) continue;
        n_counted++;
        for (int m = 0; m < n_k; m++)
            out[m] += n_nearer < k[m];
    }
    free(to);
    for (int i = 0; i < n_k; i++)
        out[i] = n_counted ? out[i] / (double)n_counted : (double)NAN;
    return STK_OK;
}

void stk_neighbours_free(stk_neighbours *all)
{
    free(all->row);
    free(all->label);
    *all = (stk_neighbours){0};
}

/* See data/order/first_fit.h. A binary tree over as many rows as there are samples, all of them empty at first: each
 * node knows the most room of a row below it, so that the first row with enough is found from the root down. */
#include "data/order/first_fit.h"

#include <stdlib.h>

#include "base/error.h"

/* Takes room out of the first row that has so much; returns which. */
static int64_t take_room(int32_t *most, int64_t n_leaves, int32_t length)
{
    int64_t node = 1;
    while (node < n_leaves)
        node = most[2 * node] >= length ? 2 * node : 2 * node + 1;
    int64_t row = node - n_leaves;
    most[node] -= length;
    for (node /= 2; node >= 1; node /= 2)
        most[node] = most[2 * node] > most[2 * node + 1] ? most[2 * node] : most[2 * node + 1];
    return row;
}

/* row_of[i] becomes the row of sample i. Returns how many rows there are. */
static int64_t place(const int32_t *lengths, int64_t n, int32_t *most, int64_t n_leaves, uint32_t *row_of)
{
    int64_t n_rows = 0;
    for (int64_t i = 0; i < n; i++) {
        if (lengths[i] <= 0) continue;
        int64_t row = take_room(most, n_leaves, lengths[i]);
        row_of[i] = (uint32_t)row;
        if (row >= n_rows) n_rows = row + 1;
    }
    return n_rows;
}

static stk_status list_rows(const int32_t *lengths, int64_t n, const uint32_t *row_of, stk_rows *out)
{
    out->start = calloc((size_t)out->n + 2, sizeof(*out->start));
    out->member = malloc((size_t)n * sizeof(*out->member));
    if (!out->start || !out->member) return stk_fail_memory((size_t)n * sizeof(*out->member));
    /* Counted two places further, a row's end is its begin before its members are put in. */
    for (int64_t i = 0; i < n; i++)
        if (lengths[i] > 0) out->start[row_of[i] + 2]++;
    for (int64_t row = 2; row <= out->n; row++)
        out->start[row] += out->start[row - 1];
    for (int64_t i = 0; i < n; i++)
        if (lengths[i] > 0) out->member[out->start[row_of[i] + 1]++] = (uint32_t)i;
    return STK_OK;
}

stk_status stk_first_fit(const int32_t *lengths, int64_t n, int64_t room, stk_rows *out)
{
    int64_t n_leaves = 1;
    stk_status status;
    *out = (stk_rows){0};
    if (n > (int64_t)UINT32_MAX || room > INT32_MAX)
        return stk_fail(STK_UNSUPPORTED, "cannot pack %lld samples into rows of %lld", (long long)n, (long long)room);
    while (n_leaves < n)
        n_leaves *= 2;
    int32_t *most = malloc((size_t)n_leaves * 2 * sizeof(*most));
    uint32_t *row_of = malloc((size_t)(n ? n : 1) * sizeof(*row_of));
    if (!most || !row_of) STK_TRY(stk_fail_memory((size_t)n_leaves * 2 * sizeof(*most)));
    for (int64_t i = 0; i < 2 * n_leaves; i++)
        most[i] = (int32_t)room;
    out->n = place(lengths, n, most, n_leaves, row_of);
    STK_TRY(list_rows(lengths, n, row_of, out));
done:
    free(most);
    free(row_of);
    if (status != STK_OK) stk_rows_free(out);
    return status;
}

void stk_rows_free(stk_rows *rows)
{
    free(rows->start);
    free(rows->member);
    *rows = (stk_rows){0};
}

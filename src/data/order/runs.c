/* See data/order/runs.h. */
#include "data/order/runs.h"

#include <stdlib.h>

#include "base/error.h"

/* While the runs are made. */
typedef struct interleave {
    const int64_t *counts;
    int64_t *taken; /* of each child */
    int64_t *open;  /* the child in each place of the cycle; -1: none */
    int64_t n_children, n_cycle, block, i_next;
    stk_runs *runs;
} interleave;

/* *p has room for n + 1 after it. */
static stk_status grow(void **p, size_t n, size_t *most, size_t bytes)
{
    if (n < *most) return STK_OK;
    size_t more = *most ? 2 * *most : 16;
    void *grown = realloc(*p, more * bytes);
    if (!grown) return stk_fail_memory(more * bytes);
    *p = grown;
    *most = more;
    return STK_OK;
}

static stk_status begin_run(stk_runs *runs)
{
    STK_RETURN_IF_ERROR(grow((void **)&runs->run, runs->n_runs, &runs->most_runs, sizeof(*runs->run)));
    runs->run[runs->n_runs++] = (stk_run){.first = runs->count, .i_piece = runs->n_pieces};
    return STK_OK;
}

static stk_status add_piece(interleave *it, int64_t i_child, int64_t n)
{
    stk_runs *runs = it->runs;
    stk_run *run = &runs->run[runs->n_runs - 1];
    STK_RETURN_IF_ERROR(grow((void **)&runs->piece, runs->n_pieces, &runs->most_pieces, sizeof(*runs->piece)));
    runs->piece[runs->n_pieces++] =
        (stk_piece){.i_child = i_child, .first = it->taken[i_child], .n = n, .at = run->n_in_round};
    run->n_in_round += n;
    run->n_pieces++;
    return STK_OK;
}

/* How many rounds from here on take a whole block of every open child, with none to be opened. */
static int64_t count_equal_rounds(const interleave *it)
{
    int64_t n_rounds = -1;
    for (int64_t i = 0; i < it->n_cycle; i++) {
        int64_t child = it->open[i];
        if (child < 0 && it->i_next < it->n_children) return 0;
        if (child < 0) continue;
        int64_t n = (it->counts[child] - it->taken[child]) / it->block;
        n_rounds = n_rounds < 0 || n < n_rounds ? n : n_rounds;
    }
    return n_rounds < 0 ? 0 : n_rounds;
}

static stk_status add_equal_rounds(interleave *it, int64_t n_rounds)
{
    STK_RETURN_IF_ERROR(begin_run(it->runs));
    for (int64_t i = 0; i < it->n_cycle; i++) {
        int64_t child = it->open[i];
        if (child < 0) continue;
        STK_RETURN_IF_ERROR(add_piece(it, child, it->block));
        it->taken[child] += n_rounds * it->block;
        it->runs->count += n_rounds * it->block;
    }
    return STK_OK;
}

/* One round as tf.data walks it. A child is seen to have ended when its block stays short, so one that ends with a
 * whole block takes an empty turn first. *n_open: how many are open afterwards. */
static stk_status add_round(interleave *it, int64_t *n_open)
{
    stk_runs *runs = it->runs;
    *n_open = 0;
    STK_RETURN_IF_ERROR(begin_run(runs));
    for (int64_t i = 0; i < it->n_cycle; i++) {
        if (it->open[i] < 0 && it->i_next < it->n_children) it->open[i] = it->i_next++;
        int64_t child = it->open[i];
        if (child < 0) continue;
        int64_t n_left = it->counts[child] - it->taken[child], n = n_left < it->block ? n_left : it->block;
        if (n > 0) STK_RETURN_IF_ERROR(add_piece(it, child, n));
        it->taken[child] += n;
        runs->count += n;
        if (n < it->block) it->open[i] = -1;
        *n_open += it->open[i] >= 0;
    }
    if (runs->run[runs->n_runs - 1].n_in_round == 0) runs->n_runs--;
    return STK_OK;
}

static stk_status check_total(const int64_t *counts, int n_children)
{
    int64_t total = 0;
    for (int i = 0; i < n_children; i++)
        if (__builtin_add_overflow(total, counts[i], &total))
            return stk_fail(STK_INVALID, "all samples together are more than can be counted");
    return STK_OK;
}

stk_status stk_runs_interleave(const int64_t *counts, int n_children, int64_t cycle, int64_t block, stk_runs *out)
{
    *out = (stk_runs){0};
    if (cycle < 1 || block < 1)
        return stk_fail(STK_INVALID, "cannot interleave in cycles of %lld and blocks of %lld: at least 1 is needed",
                        (long long)cycle, (long long)block);
    STK_RETURN_IF_ERROR(check_total(counts, n_children));
    interleave it = {.counts = counts, .n_children = n_children, .block = block, .runs = out};
    it.n_cycle = cycle < n_children ? cycle : n_children;
    stk_status status = STK_OK;
    it.taken = calloc((size_t)n_children + 1, sizeof(*it.taken));
    it.open = calloc((size_t)n_children + 1, sizeof(*it.open));
    if (!it.taken || !it.open) STK_TRY(stk_fail_memory((size_t)n_children * sizeof(*it.open)));
    for (int64_t i = 0; i < it.n_cycle; i++)
        it.open[i] = -1;
    for (int64_t n_open = 1; n_open > 0 || it.i_next < n_children;) {
        int64_t n_rounds = count_equal_rounds(&it);
        STK_TRY(n_rounds > 0 ? add_equal_rounds(&it, n_rounds) : add_round(&it, &n_open));
    }
done:
    free(it.taken);
    free(it.open);
    return status;
}

void stk_runs_free(stk_runs *runs)
{
    free(runs->run);
    free(runs->piece);
    *runs = (stk_runs){0};
}

void stk_runs_find(const stk_runs *runs, int64_t position, int64_t *i_child, int64_t *i_in_child)
{
    size_t low = 0, high = runs->n_runs - 1;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (position >= runs->run[middle].first)
            low = middle;
        else
            high = middle - 1;
    }
    const stk_run *run = &runs->run[low];
    const stk_piece *piece = &runs->piece[run->i_piece];
    int64_t i_round = (position - run->first) / run->n_in_round, at = (position - run->first) % run->n_in_round;
    for (low = 0, high = run->n_pieces - 1; low < high;) {
        size_t middle = low + (high - low + 1) / 2;
        if (at >= piece[middle].at)
            low = middle;
        else
            high = middle - 1;
    }
    *i_child = piece[low].i_child;
    *i_in_child = piece[low].first + i_round * piece[low].n + at - piece[low].at;
}

/* The order of an interleave as arithmetic: which sample of which data set is number n? tf.data's interleave keeps
 * `cycle` data sets open and takes `block` samples from each in turn; one that ends is replaced when its turn comes
 * again. Between two such events every round is like the one before, so that a few rounds are written down and the rest
 * is division. With a cycle of 1 it is a concatenation. Threads: read-only once made.
 */
#ifndef STK_DATA_ORDER_RUNS_H
#define STK_DATA_ORDER_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

/* What a round takes from one data set. */
typedef struct stk_piece {
    int64_t i_child, first; /* of the samples in the run's first round */
    int64_t n, at;          /* that many, from this place in the round on */
} stk_piece;

/* Rounds that are alike. */
typedef struct stk_run {
    int64_t first; /* position of its first sample */
    int64_t n_in_round;
    size_t i_piece, n_pieces;
} stk_run;

typedef struct stk_runs {
    stk_run *run;
    stk_piece *piece;
    size_t n_runs, n_pieces, most_runs, most_pieces;
    int64_t count; /* samples in all */
} stk_runs;

/* counts [n_children]. Free *out with stk_runs_free, after an error too. */
stk_status stk_runs_interleave(const int64_t *counts, int n_children, int64_t cycle, int64_t block, stk_runs *out);
void stk_runs_free(stk_runs *runs);
/* position in [0, count). */
void stk_runs_find(const stk_runs *runs, int64_t position, int64_t *i_child, int64_t *i_in_child);

#endif

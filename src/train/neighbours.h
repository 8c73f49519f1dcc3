/* How often the nearest rows of a data set are of one's own class: Recall@k, as Jegou et al. 2011 and Oh Song et al.
 * 2016 measure embeddings. Exact, by all distances; no index. Threads: one at a time. */
#ifndef STK_TRAIN_NEIGHBOURS_H
#define STK_TRAIN_NEIGHBOURS_H

#include "stoker/types.h"

typedef struct stk_neighbours {
    float *row;     /* [n,width] */
    int32_t *label; /* [n] */
    int64_t n, room, width;
} stk_neighbours;

/* Copies rows [n,width] and labels [n]. All calls have one width. */
stk_status stk_neighbours_add(stk_neighbours *all, const float *row, const int32_t *label, int64_t n, int64_t width);
/* For each of k [n_k] the share of rows whose k nearest others hold one of their label; NAN: no row has another of its
 * label. Of equally near ones those of other labels come first, so that rows which are all alike have recall 0. */
stk_status stk_neighbours_recall(const stk_neighbours *all, const int64_t *k, int n_k, double *out);
void stk_neighbours_free(stk_neighbours *all);

#endif

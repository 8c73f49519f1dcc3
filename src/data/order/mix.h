/* A weighted mix of data sets, tf.data's sample_from_datasets: for each position one is drawn by key, with a chance in
 * proportion to its weight, and gives its next sample. The draws are the same in every epoch, as they are there, so
 * that all epochs are equally long; what the data sets give may be shuffled.
 *
 * Which sample is number n? How many of each data set come before is written down for every 64th position, and the
 * draws since are made again. Threads: read-only once made.
 */
#ifndef STK_DATA_ORDER_MIX_H
#define STK_DATA_ORDER_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"

enum { STK_MOST_MIXED = 64 };

typedef struct stk_mix {
    int n_children;
    bool stop_at_empty;
    int64_t n[STK_MOST_MIXED];       /* samples of each */
    uint64_t weight[STK_MOST_MIXED]; /* whole numbers in proportion */
    uint64_t key;
    int64_t count;   /* samples in all */
    int64_t *before; /* [blocks of 64 positions, n_children] */
} stk_mix;

/* stop_at_empty: the mix ends where a data set is drawn that has ended; else the others go on, in proportion, until all
 * have ended. Free *out with stk_mix_free, after an error too. */
stk_status stk_mix_make(const int64_t *counts, const double *weights, int n_children, bool stop_at_empty, uint64_t seed,
                        stk_mix *out);
void stk_mix_free(stk_mix *mix);
/* position in [0, count). */
void stk_mix_find(const stk_mix *mix, int64_t position, int64_t *i_child, int64_t *i_in_child);

#endif

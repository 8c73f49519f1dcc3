/* The part of a run that is judged, and means over it. Threads: any. */
#ifndef STK_WATCH_SPAN_H
#define STK_WATCH_SPAN_H

#include <stddef.h>

#include "watch/history.h"

typedef struct stk_watch_span {
    const stk_watch_row *row; /* borrowed from the history */
    size_t n;
    bool has_gpu;
    bool main_computes; /* the trainer's first thread has a part in all computing: Stoker's */
} stk_watch_span;

/* Starting is not training: with a GPU, from the first work on it to the last row on which the job holds it; without,
 * all but the first seconds and what comes after its memory is given back. framework: as in facts, or NULL. */
stk_watch_span stk_watch_span_find(const stk_watch_history *history, const char *framework);

/* How busy the device is in a row: the GPUs in use, or the cores where the job uses no GPU; NaN: not known. Cores that
 * make data are not the device, which shows where the first thread computes: it waits for batches, and they work. */
double stk_watch_busy(const stk_watch_span *s, const stk_watch_row *row);

#define STK_WATCH_FIELD(name) offsetof(stk_watch_row, name)

/* Of a field, which is given by its offset, over time, of the rows where it is known; NaN: of none. */
double stk_watch_mean(const stk_watch_span *s, size_t offset);
double stk_watch_most(const stk_watch_span *s, size_t offset);
/* Over rows on which the GPU works. */
double stk_watch_mean_busy(const stk_watch_span *s, size_t offset);
/* Weighted by the time in which the GPU is idle; without a GPU, over all time. */
double stk_watch_mean_idle(const stk_watch_span *s, size_t offset);
/* How much of the device's idle time a share of the field filled. */
double stk_watch_fill(const stk_watch_span *s, size_t offset);

#endif

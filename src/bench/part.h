/* Parts of a machine, each measured once: what a suite's cases run, over and over and in turns, as commands of their
 * own. Each warms up, works for a while, and gives the median of some stretches. Its data it makes itself. Threads: one
 * at a time; a part takes threads as it needs. */
#ifndef STK_BENCH_PART_H
#define STK_BENCH_PART_H

#include "base/text.h"

typedef struct stk_bench_part_setting {
    int n_threads;      /* 0: as many as cores */
    double seconds;     /* of work */
    const char *device; /* NULL: "cpu" */
    const char *other;  /* NULL: none; where copies go that are between devices */
    const char *folder; /* for files; NULL: the working folder */
} stk_bench_part_setting;

typedef struct stk_bench_part {
    const char *name, *usage, *about, *unit;
    /* argument [n]: as usage says. */
    stk_status (*run)(const stk_bench_part_setting *setting, int n, const char *const *argument, double *figure);
} stk_bench_part;

extern const stk_bench_part stk_bench_part_matmul, stk_bench_part_conv, stk_bench_part_memory, stk_bench_part_jpeg,
    stk_bench_part_storage, stk_bench_part_copy, stk_bench_part_all_reduce;

/* Part number i; NULL past the end. */
const stk_bench_part *stk_bench_part_at(int i);
/* NULL: there is none of that name. */
const stk_bench_part *stk_bench_part_find(const char *name);

/* --- for parts --- */

/* "1024x512x256" -> numbers, all above 0. Errors: STK_INVALID, when there are not n of them. */
stk_status stk_bench_part_sizes(const char *text, int n, int64_t *out);
/* Calls work, which does an amount, until the seconds are over, at least 5 times after one that does not count;
 * *figure: the median of amount / second. */
stk_status stk_bench_part_repeat(double seconds, stk_status (*work)(void *user, double *amount), void *user,
                                 double *figure);

#endif

/* Which way to compute an op is best on this family of processors, as measured: one table for each family, made by
 * './dev tune' (bench/bench_ways.c, tools/tune.py) and committed with what was measured. Lists of ways (impl.h) say
 * what can be done, and have rules for what is best; a table says where another way is, by ranges of a call's sizes.
 * It is a constant: the same call gets the same way in every run, and nothing is timed here. On a processor without a
 * table ways are measured as a run begins (device/cpu/measured.h). docs/kernels.md has more.
 *
 * Threads: any, as long as none changes the environment.
 */
#ifndef STK_DEVICE_CPU_TUNED_TUNED_H
#define STK_DEVICE_CPU_TUNED_TUNED_H

#include <stdint.h>

#include "base/isa.h"
#include "graph/op.h"

/* Of products [m,k] by [k,n]: batches is 1 where all share one b. Of convolutions: pixels of an output image, side: the
 * lower of its sides, rows: pixels of all images. work: multiply-adds; weights: elements of k x n, or of all filters;
 * a grain is the largest power of two that divides a size, 64 at most. What a call does not have is 0. */
#define STK_TUNED_SIZE_LIST(X)                                                                                         \
    X(m)                                                                                                               \
    X(n)                                                                                                               \
    X(k)                                                                                                               \
    X(batches)                                                                                                         \
    X(turned_a)                                                                                                        \
    X(turned_b)                                                                                                        \
    X(images)                                                                                                          \
    X(pixels)                                                                                                          \
    X(side)                                                                                                            \
    X(rows)                                                                                                            \
    X(channels)                                                                                                        \
    X(filters)                                                                                                         \
    X(taps)                                                                                                            \
    X(stride)                                                                                                          \
    X(groups)                                                                                                          \
    X(channel_grain)                                                                                                   \
    X(filter_grain)                                                                                                    \
    X(weights)                                                                                                         \
    X(work)

typedef enum stk_tuned_size {
#define X(name) STK_TUNED_##name,
    STK_TUNED_SIZE_LIST(X)
#undef X
        STK_TUNED_N_SIZES
} stk_tuned_size;

enum { STK_TUNED_MOST_BOUNDS = 4 };
#define STK_TUNED_ANY INT64_MAX

typedef struct stk_tuned_bound {
    stk_tuned_size size;
    int64_t least, most; /* both included */
} stk_tuned_bound;

/* A shape class of calls, and the way (impl.h) that is best for it. */
typedef struct stk_tuned_row {
    stk_op op;
    stk_dtype dtype; /* of the first input */
    const char *way;
    int n_bounds; /* 0: all calls of the op and dtype */
    stk_tuned_bound bound[STK_TUNED_MOST_BOUNDS];
} stk_tuned_row;

typedef struct stk_tuned_table {
    const char *name;     /* of the family: "intel-amx" */
    const char *measured; /* "2026-11-27, Intel Xeon ..., oneDNN 2.6.3, 2 threads" */
    const stk_tuned_row *row;
    int n_rows;
} stk_tuned_table;

/* One of each file of data here. */
extern const stk_tuned_table stk_tuned_intel_amx, stk_tuned_intel_avx512, stk_tuned_intel_skylake;

/* The table of this processor's family, for a device with these instructions; NULL: none, or the environment's
 * STOKER_KERNELS is "default" or "measured". */
const stk_tuned_table *stk_tuned_of(stk_isa isa);
/* The way of the first row that has this call; NULL: none, or no table. Borrowed from the table. */
const char *stk_tuned_way(const stk_tuned_table *table, const stk_op_call *call);
/* False for calls that no table has: other ops, no elements. */
bool stk_tuned_sizes(const stk_op_call *call, int64_t sizes[STK_TUNED_N_SIZES]);
/* "channel_grain" */
const char *stk_tuned_size_name(stk_tuned_size size);

#endif

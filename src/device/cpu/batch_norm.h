/* Batch normalisation in training and its gradient over x [n_rows, n_channels]. */
#ifndef STK_DEVICE_CPU_BATCH_NORM_H
#define STK_DEVICE_CPU_BATCH_NORM_H

#include <stdbool.h>

#include "device/cpu/cpu.h"

typedef struct stk_batch_norm_state {
    const stk_cpu_body *body; /* two: sums, then results */
    int n_threads;
    int64_t n_rows, n_channels;
    double eps, momentum;
    bool unbiased, relu;
} stk_batch_norm_state;

/* Channels are padded to this, so that each thread's arrays stay aligned. */
static inline int64_t stk_batch_norm_padded(int64_t n_channels)
{
    return (n_channels + 15) / 16 * 16;
}

/* Numbers of 8 bytes that a thread needs for each padded channel: two sums in double and four parameters. */
enum { STK_BATCH_NORM_SUMS = 2, STK_BATCH_NORM_PARAMS = 4, STK_BATCH_NORM_SLOTS = 6 };

/* Bodies for stk_cpu_parallel, one after the other: sums of each part, then results. The task's state is the struct
 * above. */
typedef struct stk_batch_norm_fns {
    stk_cpu_body forward[2], grad[2];
    stk_cpu_body apply[1]; /* the result from known statistics */
} stk_batch_norm_fns;

/* By the dtype of x; of the 16-bit ones sums and parameters are f32. Empty where x is no float. */
typedef struct stk_batch_norm_table {
    stk_batch_norm_fns fns[STK_N_DTYPES];
} stk_batch_norm_table;

STK_ISA_TABLE(stk_batch_norm_table, stk_batch_norm)

#endif

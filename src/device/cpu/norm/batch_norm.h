/* Batch normalisation in training and its gradient over x [n_rows, n_channels]. */
#ifndef STK_DEVICE_CPU_NORM_BATCH_NORM_H
#define STK_DEVICE_CPU_NORM_BATCH_NORM_H

#include <stdbool.h>

#include "base/align.h"
#include "device/cpu/cpu.h"
#include "device/cpu/simd/stream.h"

typedef struct stk_batch_norm_state {
    const stk_cpu_body *body; /* two: sums, then results */
    int n_threads;
    int64_t n_rows, n_channels;
    double eps, momentum;
    bool unbiased, relu, has_residual, is_large;
} stk_batch_norm_state;

/* Rows [begin, end) of one part, for the loops. */
typedef struct stk_batch_norm_rows {
    int64_t begin, end, n_channels;
    bool relu, is_large; /* all of them: for the caches */
} stk_batch_norm_rows;

/* Whether y, memory of its own, is written past the caches. */
static inline bool stk_batch_norm_is_far(const stk_batch_norm_rows *p, const void *y, size_t element_bytes)
{
    return p->is_large && (size_t)p->n_channels * element_bytes % STK_LINE_BYTES == 0 &&
           (uintptr_t)y % STK_LINE_BYTES == 0;
}

/* Rows that are summed up in the type of the parameters, before the sums go on in double; parts are cut there. */
enum { STK_BATCH_NORM_ROWS = 64 };

/* Channels are padded to this, so that each thread's arrays stay aligned. */
static inline int64_t stk_batch_norm_padded(int64_t n_channels)
{
    return stk_round_up_i64(n_channels, 16);
}

/* Numbers of 8 bytes that a thread needs for each padded channel: two sums in double and four parameters. */
enum { STK_BATCH_NORM_SUMS = 2, STK_BATCH_NORM_PARAMS = 4, STK_BATCH_NORM_SLOTS = 6 };

/* Bodies for stk_cpu_parallel, one after the other: sums of each part, then results. The task's state is the struct
 * above. */
typedef struct stk_batch_norm_fns {
    stk_cpu_body forward[2], grad[2], sum_grad[2];
    stk_cpu_body apply[1]; /* the result from known statistics */
} stk_batch_norm_fns;

#define STK_BATCH_NORM_FNS(suffix)                                                                                     \
    {                                                                                                                  \
        {measure_share_##suffix, normalize_share_##suffix}, {sum_grads_share_##suffix, write_grads_share_##suffix},    \
            {sum_masked_share_##suffix, write_masked_share_##suffix},                                                  \
        {                                                                                                              \
            apply_share_##suffix                                                                                       \
        }                                                                                                              \
    }

/* By the dtype of x; of the 16-bit ones sums and parameters are f32. Empty where x is no float. */
typedef struct stk_batch_norm_table {
    stk_batch_norm_fns fns[STK_N_DTYPES];
} stk_batch_norm_table;

STK_ISA_TABLE(stk_batch_norm_table, stk_batch_norm)

#ifdef STK_ISA_X86
/* Of bf16. To be called only where stk_isa_has_bf16. */
extern const stk_batch_norm_fns stk_batch_norm_avx512bf16;
#endif

#endif

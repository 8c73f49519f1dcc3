/* See sgemm_memory.h. */
#include "device/cpu/onednn/sgemm_memory.h"

#include <stdlib.h>

#include "base/align.h"

static int64_t block_of(int64_t n, int64_t least, int64_t most, int64_t unit)
{
    return stk_round_up_i64(n < least ? least : n > most ? most : n, unit);
}

/* oneDNN's matrices lie in columns: its m is our n. */
size_t stk_sgemm_packing_bytes(int64_t m, int64_t n, int64_t k)
{
    enum { TILE_M = 48, TILE_N = 8, MOST_M = 9984, MOST_N = 384, FEW_N = 24, MOST_K = 384, LEAST_K = 128, FEW_K = 48 };
    enum { PAGES = 4 * 4096 };
    int64_t rows = block_of(n, TILE_M, MOST_M, TILE_M), cols = block_of(m, TILE_N, k < FEW_K ? FEW_N : MOST_N, TILE_N);
    int64_t depth = k >= 2 * MOST_K ? MOST_K : k > MOST_K ? (k + 1) / 2 : k > LEAST_K ? k : LEAST_K;
    return (size_t)(rows * depth + depth * cols + TILE_M + cols) * sizeof(float) + PAGES;
}

/* Of those in which oneDNN still makes its kernels, and keeps small blocks. */
enum { UNSETTLED_CALLS = 12 };
static _Thread_local int n_calls;

/* glibc (up to 2.37) cuts an aligned block out of a larger one, and the cuttings go into the thread's cache of free
 * blocks, where they count as in use: freed again, the block is too small for the next one of its size. A cache that
 * holds all it may of these sizes takes none, and the cuttings are joined to the block. */
void stk_sgemm_settle_thread(void)
{
    enum { UNIT = 16, N_SIZES = 12, MOST_KEPT = 7, HEAD = 8 };
    void *volatile kept[N_SIZES][MOST_KEPT];
    if (n_calls == UNSETTLED_CALLS) return;
    n_calls++;
    for (int i = 0; i < N_SIZES * MOST_KEPT; i++)
        kept[i / MOST_KEPT][i % MOST_KEPT] = malloc((size_t)(i / MOST_KEPT + 2) * UNIT - HEAD);
    for (int i = 0; i < N_SIZES * MOST_KEPT; i++)
        free(kept[i / MOST_KEPT][i % MOST_KEPT]);
}

void stk_sgemm_unsettle_thread(void)
{
    n_calls = 0;
}

/* See matmul_onednn.h. oneDNN's own threads are never used: its team would spin against ours between two kernels. */
#include "device/cpu/matmul_onednn.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"

bool stk_sgemm_pays(int64_t m, int64_t n, int64_t k)
{
    return m >= 48 && n >= 48 && k >= 48 && (double)m * (double)n * (double)k >= 3e7;
}

/* What a part packs is a column strip of b and a row strip of a: the grid with the least of both wins. One part for
 * each thread; two of half the size took up to 1.3 times as long. */
stk_sgemm_grid stk_sgemm_cut(int64_t m, int64_t n, int n_threads)
{
    enum { LEAST = 96 }; /* rows and columns of a part */
    stk_sgemm_grid best = {1, 1};
    double least = 1e30;
    for (int rows = 1; rows <= n_threads; rows++) {
        if (n_threads % rows) continue;
        int cols = n_threads / rows;
        double strip = (double)m / rows + (double)n / cols;
        bool is_thin = (rows > 1 && m / rows < LEAST) || (cols > 1 && n / cols < LEAST);
        if (is_thin) strip += 1e9;
        if (strip > least) continue;
        least = strip;
        best = (stk_sgemm_grid){rows, cols};
    }
    return best;
}

stk_status stk_sgemm_part(const stk_sgemm *g, stk_sgemm_grid grid, int i_part)
{
    enum { GRAIN = 24 }; /* a multiple of the tiles' sides */
    int64_t row, row_end, col, col_end;
    stk_sgemm part = *g;
    stk_cpu_share(g->m, GRAIN, i_part / grid.cols, grid.rows, &row, &row_end);
    stk_cpu_share(g->n, GRAIN, i_part % grid.cols, grid.cols, &col, &col_end);
    if (row == row_end || col == col_end) return STK_OK;
    part.m = row_end - row;
    part.n = col_end - col;
    part.a += g->transpose_a ? row : row * g->a_step;
    part.b += g->transpose_b ? col * g->b_step : col;
    part.c += row * g->c_step + col;
    return stk_onednn_sgemm(&part);
}

typedef struct sgemm_task {
    const stk_sgemm *g;
    stk_sgemm_grid grid;
    _Atomic int *failed;
} sgemm_task;

static void run_part(const void *p, int i_part, int n_parts)
{
    (void)n_parts;
    const sgemm_task *task = p;
    stk_status status = stk_sgemm_part(task->g, task->grid, i_part);
    if (status != STK_OK) atomic_store(task->failed, (int)status);
}

stk_status stk_sgemm_run(const stk_sgemm *g, int n_threads)
{
    _Atomic int failed = STK_OK;
    if (g->k == 0) {
        for (int64_t i = 0; i < g->m && g->n > 0 && !g->adds; i++)
            memset(g->c + i * g->c_step, 0, (size_t)g->n * sizeof(float));
        return STK_OK;
    }
    sgemm_task task = {g, stk_sgemm_cut(g->m, g->n, n_threads), &failed};
    stk_cpu_parallel(task.grid.rows * task.grid.cols, run_part, &task);
    /* The text was kept in the thread that failed. */
    if (failed != STK_OK) return stk_fail((stk_status)failed, "oneDNN's product failed");
    return STK_OK;
}

/* See matmul_onednn.h. oneDNN's own threads are never used: its team would spin against ours between two kernels. */
#include "device/cpu/matmul/matmul_onednn.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "device/cpu/onednn/sgemm_memory.h"

bool stk_sgemm_pays(int64_t m, int64_t n, int64_t k)
{
#ifdef STK_ISA_X86
    return m >= 48 && n >= 48 && k >= 48 && (double)m * (double)n * (double)k >= 3e7;
#else
    /* oneDNN's own code for f32 products is x86's; elsewhere it has plain loops, unless it was built with another
     * library. */
    (void)m, (void)n, (void)k;
    return false;
#endif
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

enum { GRAIN = 24 }; /* of rows and columns: a multiple of the tiles' sides */

static void add_bias(const stk_sgemm *g)
{
    const float *restrict bias = g->bias;
    for (int64_t i = 0; i < g->m; i++) {
        float *restrict row = g->c + i * g->c_step;
        for (int64_t j = 0; j < g->n; j++)
            row[j] += bias[j];
    }
}

stk_status stk_sgemm_part(const stk_sgemm *g, stk_sgemm_grid grid, int i_part)
{
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
    STK_RETURN_IF_ERROR(stk_onednn_sgemm(&part));
    if (!g->bias) return STK_OK;
    part.bias += col;
    add_bias(&part);
    return STK_OK;
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

/* --- along k --- */

/* oneDNN's threshold in 2.6 and 3.x, as measured. */
static bool is_left_unpacked(int64_t m, int64_t n)
{
    return 1.0 / (double)m + 1.0 / (double)n >= 0.0038;
}

int stk_sgemm_depth(int64_t m, int64_t n, int64_t k, int n_threads)
{
    enum { MOST = 4, LEAST_K = 256 }; /* a part of c for each thread; rows of a part */
    if (n_threads < 2 || n_threads > MOST || k < LEAST_K * n_threads || is_left_unpacked(m, n)) return 1;
    stk_sgemm_grid grid = stk_sgemm_cut(m, n, n_threads);
    return is_left_unpacked(m / grid.rows, n / grid.cols) ? n_threads : 1;
}

size_t stk_sgemm_deep_bytes(int64_t m, int64_t n, int depth)
{
    return (size_t)(depth - 1) * (size_t)(m * n) * sizeof(float);
}

typedef struct deep_task {
    const stk_sgemm *g;
    float *scratch;
    int depth;
    _Atomic int *failed;
} deep_task;

static void multiply_slice(const void *p, int i_part, int n_parts)
{
    enum { SLICE_GRAIN = 8 };
    const deep_task *task = p;
    int64_t begin, end;
    stk_sgemm part = *task->g;
    stk_cpu_share(part.k, SLICE_GRAIN, i_part, n_parts, &begin, &end);
    part.k = end - begin;
    part.a += part.transpose_a ? begin * part.a_step : begin;
    part.b += part.transpose_b ? begin : begin * part.b_step;
    if (i_part > 0) part.c = task->scratch + (i_part - 1) * part.m * part.n;
    stk_status status = stk_onednn_sgemm(&part);
    if (status != STK_OK) atomic_store(task->failed, (int)status);
}

static void add_slices(const void *p, int i_part, int n_parts)
{
    const deep_task *task = p;
    int64_t width = task->g->n, n = task->g->m * width, begin, end;
    float *restrict c = task->g->c;
    stk_cpu_share(task->g->m, 1, i_part, n_parts, &begin, &end);
    stk_sgemm rows = *task->g;
    rows.m = end - begin;
    rows.c += begin * width;
    begin *= width;
    end *= width;
    for (int d = 1; d < task->depth; d++) {
        const float *restrict slice = task->scratch + (d - 1) * n;
        for (int64_t i = begin; i < end; i++)
            c[i] += slice[i];
    }
    if (rows.bias) add_bias(&rows);
}

stk_status stk_sgemm_run_deep(const stk_sgemm *g, int depth, int n_threads, float *scratch)
{
    _Atomic int failed = STK_OK;
    deep_task task = {g, scratch, depth, &failed};
    stk_cpu_parallel(depth, multiply_slice, &task);
    if (failed != STK_OK) return stk_fail((stk_status)failed, "oneDNN's product failed");
    stk_cpu_parallel(n_threads, add_slices, &task);
    return STK_OK;
}

/* --- what it takes --- */

static int64_t largest_share(int64_t n, int n_parts)
{
    int64_t n_grains = (n + GRAIN - 1) / GRAIN, share = (n_grains + n_parts - 1) / n_parts * GRAIN;
    return share < n ? share : n;
}

size_t stk_sgemm_library_bytes(int64_t m, int64_t n, int64_t k, int n_threads)
{
    int depth = stk_sgemm_depth(m, n, k, n_threads);
    stk_sgemm_grid grid = depth > 1 ? (stk_sgemm_grid){1, 1} : stk_sgemm_cut(m, n, n_threads);
    if (k == 0) return 0;
    return (size_t)n_threads *
           stk_sgemm_packing_bytes(largest_share(m, grid.rows), largest_share(n, grid.cols), (k + depth - 1) / depth);
}

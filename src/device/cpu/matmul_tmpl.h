/* For matmul_isa.c, once for each T: a packed matrix product after Goto & van de Geijn 2008.
 *
 *   b is packed into panels of COLS columns, KC rows deep: a panel stays in the L1 cache
 *   a is read where it is when its rows are contiguous, else packed into panels of ROWS rows
 *   a tile ROWS x COLS of c is summed up in registers
 *
 * c is written by the first KC rows and added to by the following ones. Threads share the tiles along m (b is packed
 * by all of them, then a barrier), or along n where m has too few (then each packs what it needs).
 */

typedef T NAME(vec) __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias));

enum {
    NAME(LANES) = VEC_BYTES / (int)sizeof(T),
    NAME(COLS) = 2 * VEC_BYTES / (int)sizeof(T),
    NAME(KC) = 1024 / (int)sizeof(T),
    NAME(MC) = 16 * ROWS,
    NAME(MOST_B) = (4 << 20) / (int)sizeof(T), /* elements of b packed at a time */
};

/* --- the tile --- */

/* c[ROWS][COLS] (+)= a b over k steps. Element (i, l) of a is at a[i * a_row + l * a_col]; b is a packed panel. */
static inline __attribute__((always_inline)) void NAME(tile)(int64_t k, const T *a, int64_t a_row, int64_t a_col,
                                                             const T *b, T *c, int64_t c_row, int adds)
{
    NAME(vec) sum[ROWS][2];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
        sum[i][0] = sum[i][1] = (NAME(vec)){0};
    for (int64_t l = 0; l < k; l++, a += a_col, b += NAME(COLS)) {
        NAME(vec) b0 = *(const NAME(vec) *)b, b1 = *(const NAME(vec) *)(b + NAME(LANES));
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++) {
            T x = a[i * a_row];
            sum[i][0] += x * b0;
            sum[i][1] += x * b1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
        NAME(vec) *to = (NAME(vec) *)(c + i * c_row), *next = (NAME(vec) *)(c + i * c_row + NAME(LANES));
        if (adds) {
            sum[i][0] += *to;
            sum[i][1] += *next;
        }
        *to = sum[i][0];
        *next = sum[i][1];
    }
}

static __attribute__((noinline)) void NAME(tile_rows)(int64_t k, const T *a, int64_t a_row, const T *b, T *c,
                                                      int64_t c_row, int adds)
{
    NAME(tile)(k, a, a_row, 1, b, c, c_row, adds);
}

static __attribute__((noinline)) void NAME(tile_packed)(int64_t k, const T *a, const T *b, T *c, int64_t c_row,
                                                        int adds)
{
    NAME(tile)(k, a, 1, ROWS, b, c, c_row, adds);
}

/* --- packing --- */

/* n <= COLS columns of b from row `from` on, k rows; zeros beyond n. */
static void NAME(pack_b)(const stk_gemm *g, int64_t from, int64_t k, int64_t col, int64_t n, T *to)
{
    const T *b = (const T *)g->b + from * g->b_row + col * g->b_col;
    if (n < NAME(COLS))
        for (int64_t i = 0; i < k * NAME(COLS); i++)
            to[i] = 0;
    if (g->b_col == 1 && n == NAME(COLS)) {
        for (int64_t l = 0; l < k; l++, to += NAME(COLS), b += g->b_row) {
            *(NAME(vec) *)to = *(const NAME(vec) *)b;
            *(NAME(vec) *)(to + NAME(LANES)) = *(const NAME(vec) *)(b + NAME(LANES));
        }
        return;
    }
    /* Eight rows at a time, so that each line of a transposed b is used while it is there. */
    for (int64_t l = 0; l < k; l += 8) {
        int64_t end = l + 8 < k ? l + 8 : k;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = l; i < end; i++)
                to[i * NAME(COLS) + j] = b[i * g->b_row + j * g->b_col];
    }
}

/* m <= MC rows of a from `row` on, k columns from `from` on, as panels of ROWS rows; zeros beyond m. */
static void NAME(pack_a)(const stk_gemm *g, int64_t row, int64_t m, int64_t from, int64_t k, T *to)
{
    const T *a = (const T *)g->a + row * g->a_row + from * g->a_col;
    for (int64_t at = 0; at < m; at += ROWS, a += ROWS * g->a_row) {
        int64_t n = m - at < ROWS ? m - at : ROWS;
        for (int64_t l = 0; l < k; l++, to += ROWS) {
            const T *src = a + l * g->a_col;
            if (n == ROWS && g->a_row == 1) {
                memcpy(to, src, ROWS * sizeof(T));
                continue;
            }
            for (int64_t i = 0; i < ROWS; i++)
                to[i] = i < n ? src[i * g->a_row] : 0;
        }
    }
}

/* --- blocks --- */

/* A tile at the edge of c: whole in a buffer, then what lies inside. */
static void NAME(edge_tile)(int64_t k, const T *a, int64_t a_row, bool is_packed, const T *b, T *c, int64_t c_row,
                            int adds, int64_t m, int64_t n)
{
    T whole[ROWS * NAME(COLS)] __attribute__((aligned(64)));
    if (is_packed)
        NAME(tile_packed)(k, a, b, whole, NAME(COLS), 0);
    else
        NAME(tile_rows)(k, a, a_row, b, whole, NAME(COLS), 0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * c_row + j] = adds ? c[i * c_row + j] + whole[i * NAME(COLS) + j] : whole[i * NAME(COLS) + j];
}

/* One panel of b against m <= MC rows of a. */
static void NAME(multiply_panel)(const stk_gemm *g, int64_t row, int64_t m, int64_t from, int64_t k, const T *b,
                                 int64_t col, int64_t n, bool is_packed)
{
    const T *packed = g->packed_a, *a = (const T *)g->a + row * g->a_row + from;
    T *c = (T *)g->c + row * g->n + col;
    int adds = from > 0;
    for (int64_t i = 0; i < m; i += ROWS, c += ROWS * g->n) {
        int64_t n_rows = m - i < ROWS ? m - i : ROWS;
        /* A panel that is not whole was packed with zeros even where the others are read in place. */
        bool here = is_packed || n_rows < ROWS;
        const T *from_a = is_packed ? packed + i * k : n_rows < ROWS ? packed : a + i * g->a_row;
        if (n_rows < ROWS || n < NAME(COLS))
            NAME(edge_tile)(k, from_a, g->a_row, here, b, c, g->n, adds, n_rows, n);
        else if (here)
            NAME(tile_packed)(k, from_a, b, c, g->n, adds);
        else
            NAME(tile_rows)(k, from_a, g->a_row, b, c, g->n, adds);
    }
}

/* Rows [begin, end) of c, for columns [col, col + n) whose b is packed panel by panel for each KC rows. */
static void NAME(multiply)(const stk_gemm *g, int64_t begin, int64_t end, int64_t col, int64_t n, const T *packed_b)
{
    int64_t n_panels = (n + NAME(COLS) - 1) / NAME(COLS);
    bool is_packed = g->a_col != 1;
    for (int64_t from = 0; from < g->k; from += NAME(KC)) {
        int64_t k = g->k - from < NAME(KC) ? g->k - from : NAME(KC);
        const T *block = packed_b + from * n_panels * NAME(COLS);
        for (int64_t row = begin; row < end; row += NAME(MC)) {
            int64_t m = end - row < NAME(MC) ? end - row : NAME(MC), whole = m / ROWS * ROWS;
            if (is_packed)
                NAME(pack_a)(g, row, m, from, k, g->packed_a);
            else if (whole < m)
                NAME(pack_a)(g, row + whole, m - whole, from, k, g->packed_a);
            for (int64_t p = 0; p < n_panels; p++) {
                int64_t at = p * NAME(COLS), width = n - at < NAME(COLS) ? n - at : NAME(COLS);
                NAME(multiply_panel)(g, row, m, from, k, block + p * k * NAME(COLS), col + at, width, is_packed);
            }
        }
    }
}

/* Panels [first, last) of columns [col, col + n), for all of k. */
static void NAME(pack_panels)(const stk_gemm *g, int64_t col, int64_t n, int64_t first, int64_t last, T *packed_b)
{
    int64_t n_panels = (n + NAME(COLS) - 1) / NAME(COLS);
    for (int64_t from = 0; from < g->k; from += NAME(KC)) {
        int64_t k = g->k - from < NAME(KC) ? g->k - from : NAME(KC);
        T *block = packed_b + from * n_panels * NAME(COLS);
        for (int64_t p = first; p < last; p++) {
            int64_t at = p * NAME(COLS), width = n - at < NAME(COLS) ? n - at : NAME(COLS);
            NAME(pack_b)(g, from, k, col + at, width, block + p * k * NAME(COLS));
        }
    }
}

/* --- all --- */

/* Columns of b that are packed at a time. */
static int64_t NAME(columns_at_once)(int64_t n, int64_t k)
{
    int64_t most = NAME(MOST_B) / (k + 1) / NAME(COLS) * NAME(COLS);
    most = most < 8 * NAME(COLS) ? 8 * NAME(COLS) : most;
    return n < most ? n : most;
}

static size_t NAME(packed_b_bytes)(int64_t n, int64_t k, int n_threads)
{
    int64_t columns = NAME(columns_at_once)(n, k) + NAME(COLS) * (n_threads + 1);
    return (size_t)(columns * k) * sizeof(T) + 64;
}

/* How evenly n items are shared. */
static double NAME(balance)(int64_t n, int n_threads)
{
    return (double)n / (double)((n + n_threads - 1) / n_threads * n_threads);
}

static void NAME(run)(const stk_gemm *g, int i_thread, int n_threads)
{
    int64_t begin, end, step = NAME(columns_at_once)(g->n, g->k);
    int64_t m_tiles = (g->m + ROWS - 1) / ROWS;
    for (int64_t col = 0; col < g->n; col += step) {
        int64_t n = g->n - col < step ? g->n - col : step, n_panels = (n + NAME(COLS) - 1) / NAME(COLS);
        bool by_rows = NAME(balance)(m_tiles, n_threads) >= NAME(balance)(n_panels, n_threads) - 0.05;
        if (by_rows) {
            stk_cpu_share(n_panels, 1, i_thread, n_threads, &begin, &end);
            NAME(pack_panels)(g, col, n, begin, end, g->packed_b);
            stk_cpu_barrier(n_threads);
            stk_cpu_share(g->m, ROWS, i_thread, n_threads, &begin, &end);
            NAME(multiply)(g, begin, end, col, n, g->packed_b);
        } else {
            stk_cpu_share(n, NAME(COLS), i_thread, n_threads, &begin, &end);
            /* Threads pack side by side: shares are whole panels. */
            T *own = (T *)g->packed_b + begin * g->k;
            NAME(pack_panels)(g, col + begin, end - begin, 0, (end - begin + NAME(COLS) - 1) / NAME(COLS), own);
            NAME(multiply)(g, 0, g->m, col + begin, end - begin, own);
        }
        if (col + step < g->n) stk_cpu_barrier(n_threads);
    }
}

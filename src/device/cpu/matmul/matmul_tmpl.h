/* For matmul_isa.c, once for each T: a packed matrix product after Goto & van de Geijn 2008.
 *
 *   b is packed into panels of COLS columns, KC rows deep: a panel stays in the L1 cache
 *   a is read where it is when its rows are contiguous, else packed into panels of ROWS rows
 *   a tile ROWS x COLS of c is summed up in registers
 *
 * c is written by the first KC rows and added to by the following ones. Parts share the tiles along m (all of them pack
 * b first, which is a call of its own), or along n where m has too few (then each packs what it needs). Where a is so
 * small that it stays in the L2 cache, b is packed one panel at a time, which is used at once.
 */

typedef T NAME(vec) __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias));

enum {
    NAME(LANES) = VEC_BYTES / (int)sizeof(T),
    NAME(COLS) = 2 * VEC_BYTES / (int)sizeof(T),
    NAME(KC) = 1152 / (int)sizeof(T),
    NAME(MC) = 16 * ROWS,
    NAME(MOST_B) = (4 << 20) / (int)sizeof(T), /* elements of b packed at a time */
};

/* --- the tile --- */

/* One step along k: a column of a times a row of b. rows: a's rows 0, 3 and 6, of which x86 reaches two more each. */
static inline __attribute__((always_inline)) void NAME(tile_step)(const int height, const T *const a[3], int64_t at,
                                                                  int64_t a_row, const T *b, NAME(vec) sum[ROWS][2])
{
    NAME(vec) b0 = *(const NAME(vec) *)b, b1 = *(const NAME(vec) *)(b + NAME(LANES));
#pragma GCC unroll 16
    for (int i = 0; i < height; i++) {
        T x = a[i / 3][i % 3 * a_row + at];
        sum[i][0] += x * b0;
        sum[i][1] += x * b1;
    }
}

/* c[height][COLS] (+)= a b over k steps. Element (i, l) of a is at a[i * a_row + l * a_col]; b is a packed panel. Four
 * steps at a time: where a core's other thread is busy, instructions are what is scarce. ahead: that many steps before
 * it is used b is asked for, where more lies behind it that is used next; 0: never. */
static inline __attribute__((always_inline)) void NAME(tile)(const int height, const int ahead, int64_t k, const T *a,
                                                             int64_t a_row, int64_t a_col, const T *b, T *c,
                                                             int64_t c_row, int adds)
{
    NAME(vec) sum[ROWS][2];
    int64_t l = 0;
#pragma GCC unroll 16
    for (int i = 0; i < height; i++)
        sum[i][0] = sum[i][1] = (NAME(vec)){0};
    const T *rows[3] = {a, height > 3 ? a + 3 * a_row : a, height > 6 ? a + 6 * a_row : a};
    for (; l + 4 <= k; l += 4, b += 4 * NAME(COLS)) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            if (ahead > 0) {
                __builtin_prefetch(b + (i + ahead) * NAME(COLS));
                __builtin_prefetch(b + (i + ahead) * NAME(COLS) + NAME(LANES));
            }
            NAME(tile_step)(height, rows, i * a_col, a_row, b + i * NAME(COLS), sum);
        }
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++) {
            rows[i] += 4 * a_col;
            /* Else the compiler keeps a pointer for each row and step, in memory. */
            __asm__("" : "+r"(rows[i]));
        }
    }
    for (; l < k; l++, b += NAME(COLS)) {
        NAME(tile_step)(height, rows, 0, a_row, b, sum);
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            rows[i] += a_col;
    }
#pragma GCC unroll 16
    for (int i = 0; i < height; i++) {
        NAME(vec) *to = (NAME(vec) *)(c + i * c_row), *next = (NAME(vec) *)(c + i * c_row + NAME(LANES));
        if (adds) {
            sum[i][0] += *to;
            sum[i][1] += *next;
        }
        *to = sum[i][0];
        *next = sum[i][1];
    }
}

/* a as the caller has it, or packed; high tiles, and low ones for what high ones leave. */
typedef void (*NAME(tile_fn))(int64_t k, const T *a, int64_t a_row, const T *b, T *c, int64_t c_row, int adds);

#define TILE_FN(name, height, row_step, col_step)                                                                      \
    static __attribute__((noinline)) void NAME(name)(int64_t k, const T *a, int64_t a_row, const T *b, T *c,           \
                                                     int64_t c_row, int adds)                                          \
    {                                                                                                                  \
        (void)a_row;                                                                                                   \
        NAME(tile)(height, 0, k, a, row_step, col_step, b, c, c_row, adds);                                            \
    }
TILE_FN(high_here, ROWS, a_row, 1)
TILE_FN(high_packed, ROWS, 1, ROWS)
TILE_FN(low_here, LOW_ROWS, a_row, 1)
TILE_FN(low_packed, LOW_ROWS, 1, LOW_ROWS)
#undef TILE_FN

/* --- packing --- */

typedef T NAME(vec4) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));

/* to[i][j] = from[j][i] for 4 x 4 elements; steps from one row to the next. */
static inline void NAME(transpose4)(const T *from, int64_t from_row, T *to, int64_t to_row)
{
    NAME(vec4) r0 = *(const NAME(vec4) *)from, r1 = *(const NAME(vec4) *)(from + from_row);
    NAME(vec4) r2 = *(const NAME(vec4) *)(from + 2 * from_row), r3 = *(const NAME(vec4) *)(from + 3 * from_row);
    NAME(vec4) low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    NAME(vec4) top01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7), top23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    *(NAME(vec4) *)to = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    *(NAME(vec4) *)(to + to_row) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    *(NAME(vec4) *)(to + 2 * to_row) = __builtin_shufflevector(top01, top23, 0, 1, 4, 5);
    *(NAME(vec4) *)(to + 3 * to_row) = __builtin_shufflevector(top01, top23, 2, 3, 6, 7);
}

/* One panel: `width` columns of k rows, zeros beyond them. */
static void NAME(pack_panel)(const T *b, int64_t b_row, int64_t b_col, int64_t k, int64_t width, T *to)
{
    int64_t l = 0;
    if (width < NAME(COLS))
        for (int64_t i = 0; i < k * NAME(COLS); i++)
            to[i] = 0;
    else if (b_row == 1)
        for (; l + 4 <= k; l += 4)
            for (int64_t j = 0; j < NAME(COLS); j += 4)
                NAME(transpose4)(b + j * b_col + l, b_col, to + l * NAME(COLS) + j, NAME(COLS));
    for (; l < k; l++)
        for (int64_t j = 0; j < width; j++)
            to[l * NAME(COLS) + j] = b[l * b_row + j * b_col];
}

/* Columns [first, last) of panels over k rows of b from row `from` on; columns beyond n become zeros. Some panels at a
 * time, so that whole lines of b are used while they are there. */
static void NAME(pack_b)(const stk_gemm *g, int64_t from, int64_t k, int64_t col, int64_t n, int64_t first,
                         int64_t last, T *to)
{
    enum { GROUP = 4 };
    const T *b = (const T *)g->b + from * g->b_row + col * g->b_col;
    for (int64_t p = first; p < last; p += GROUP) {
        int64_t end = p + GROUP < last ? p + GROUP : last;
        for (int64_t l = 0; l < k && g->b_col == 1; l++)
            for (int64_t q = p; q < end && (q + 1) * NAME(COLS) <= n; q++) {
                const T *src = b + l * g->b_row + q * NAME(COLS);
                T *dst = to + (q * k + l) * NAME(COLS);
                *(NAME(vec) *)dst = *(const NAME(vec) *)src;
                *(NAME(vec) *)(dst + NAME(LANES)) = *(const NAME(vec) *)(src + NAME(LANES));
            }
        for (int64_t q = p; q < end; q++) {
            int64_t width = n - q * NAME(COLS) < NAME(COLS) ? n - q * NAME(COLS) : NAME(COLS);
            if (g->b_col == 1 && width == NAME(COLS)) continue;
            NAME(pack_panel)(b + q * NAME(COLS) * g->b_col, g->b_row, g->b_col, k, width, to + q * k * NAME(COLS));
        }
    }
}

/* The height of the next tile when m rows are left: 6s and 4s instead of 6s and a 2. */
static inline int64_t NAME(next_height)(int64_t m)
{
    return m <= LOW_ROWS || (m == 2 * LOW_ROWS && m > ROWS) ? LOW_ROWS : ROWS;
}

/* Rows left for a tile that is not whole. */
static int64_t NAME(rest_rows)(int64_t m)
{
    while (m > 0 && m >= NAME(next_height)(m))
        m -= NAME(next_height)(m);
    return m;
}

/* m <= MC rows of a from `row` on, k columns from `from` on, as panels; zeros beyond m. */
static void NAME(pack_a)(const stk_gemm *g, int64_t row, int64_t m, int64_t from, int64_t k, T *to)
{
    const T *a = (const T *)g->a + row * g->a_row + from * g->a_col;
    int64_t whole = 0, height;
    /* Row by row of a transposed a, whose lines run across all panels. */
    for (; m - whole >= ROWS && NAME(next_height)(m - whole) == ROWS; whole += ROWS)
        continue;
    for (int64_t l = 0; l < k && g->a_row == 1; l++)
        for (int64_t at = 0; at < whole; at += ROWS)
            memcpy(to + at * k + l * ROWS, a + l * g->a_col + at, ROWS * sizeof(T));
    for (int64_t at = g->a_row == 1 ? whole : 0; at < m; at += height) {
        height = NAME(next_height)(m - at);
        int64_t n = m - at < height ? m - at : height;
        T *panel = to + at * k;
        for (int64_t l = 0; l < k; l++, panel += height)
            for (int64_t i = 0; i < height; i++)
                panel[i] = i < n ? a[(at + i) * g->a_row + l * g->a_col] : 0;
    }
}

/* Rows of b that are multiplied at a time: KC at most, and blocks are about equal. */
static int64_t NAME(depth)(int64_t k)
{
    int64_t n = (k + NAME(KC) - 1) / NAME(KC);
    return n ? ((k + n - 1) / n + 7) / 8 * 8 : 8;
}

/* --- blocks --- */

/* A tile at the edge of c: whole in a buffer, then what lies inside. */
static void NAME(edge_tile)(NAME(tile_fn) tile, int64_t k, const T *a, int64_t a_row, const T *b, T *c, int64_t c_row,
                            int adds, int64_t m, int64_t n)
{
    T whole[ROWS * NAME(COLS)] __attribute__((aligned(64)));
    tile(k, a, a_row, b, whole, NAME(COLS), 0);
    for (int64_t i = 0; i < m; i++) {
        T *to = c + i * c_row;
        const T *src = whole + i * NAME(COLS);
        if (adds)
            for (int64_t j = 0; j < n; j++)
                to[j] += src[j];
        else
            for (int64_t j = 0; j < n; j++)
                to[j] = src[j];
    }
}

/* While c is in the first-level cache. */
static void NAME(add_bias)(const T *restrict bias, int64_t m, int64_t n, T *restrict c, int64_t c_row)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * c_row + j] += bias[j];
}

/* One panel of b against m <= MC rows of a. */
static void NAME(multiply_panel)(const stk_gemm *g, int64_t row, int64_t m, int64_t from, int64_t k, const T *b,
                                 int64_t col, int64_t n, bool is_packed)
{
    const T *packed = g->packed_a, *a = (const T *)g->a + row * g->a_row + from;
    T *c = (T *)g->c + row * g->n + col;
    int adds = from > 0, is_last = from + k == g->k;
    int64_t n_high = 0, n_low = 0;
    for (int64_t left = m; left > 0; left -= NAME(next_height)(left))
        NAME(next_height)(left) == ROWS ? n_high++ : n_low++;
    for (int64_t tile_no = 0; tile_no < n_high + n_low; tile_no++) {
        int64_t t = g->downwards ? n_high + n_low - 1 - tile_no : tile_no, height = t < n_high ? ROWS : LOW_ROWS;
        int64_t i = t < n_high ? t * ROWS : n_high * ROWS + (t - n_high) * LOW_ROWS;
        int64_t n_rows = m - i < height ? m - i : height;
        /* The last panel, where it is not whole, was packed even where the others are read in place. */
        bool here = !is_packed && n_rows == height;
        const T *from_a = here ? a + i * g->a_row : is_packed ? packed + i * k : packed;
        NAME(tile_fn)
        tile =
            height == ROWS ? (here ? NAME(high_here) : NAME(high_packed)) : (here ? NAME(low_here) : NAME(low_packed));
        if (n_rows < height || n < NAME(COLS))
            NAME(edge_tile)(tile, k, from_a, g->a_row, b, c + i * g->n, g->n, adds, n_rows, n);
        else
            tile(k, from_a, g->a_row, b, c + i * g->n, g->n, adds);
        if (is_last && g->bias) NAME(add_bias)((const T *)g->bias + col, n_rows, n, c + i * g->n, g->n);
    }
}

/* Rows [row, row + m) of a as multiply_panel wants them. */
static void NAME(pack_rows)(const stk_gemm *g, int64_t row, int64_t m, int64_t from, int64_t k)
{
    int64_t rest = NAME(rest_rows)(m);
    if (g->a_col != 1)
        NAME(pack_a)(g, row, m, from, k, g->packed_a);
    else if (rest)
        NAME(pack_a)(g, row + m - rest, rest, from, k, g->packed_a);
}

/* Rows [begin, end) of c, for columns [col, col + n) whose b is packed panel by panel for each KC rows. */
static void NAME(multiply)(const stk_gemm *g, int64_t begin, int64_t end, int64_t col, int64_t n, const T *packed_b)
{
    int64_t n_panels = (n + NAME(COLS) - 1) / NAME(COLS);
    for (int64_t from = 0, depth = NAME(depth)(g->k); from < g->k; from += depth) {
        int64_t k = g->k - from < depth ? g->k - from : depth;
        const T *block = packed_b + from * n_panels * NAME(COLS);
        for (int64_t row = begin; row < end; row += NAME(MC)) {
            int64_t m = end - row < NAME(MC) ? end - row : NAME(MC);
            NAME(pack_rows)(g, row, m, from, k);
            for (int64_t p = 0; p < n_panels; p++) {
                int64_t at = p * NAME(COLS), width = n - at < NAME(COLS) ? n - at : NAME(COLS);
                NAME(multiply_panel)(g, row, m, from, k, block + p * k * NAME(COLS), col + at, width, g->a_col != 1);
            }
        }
    }
}

/* Panels [first, last) of columns [col, col + n), for all of k. */
static void NAME(pack_panels)(const stk_gemm *g, int64_t col, int64_t n, int64_t first, int64_t last, T *packed_b)
{
    int64_t n_panels = (n + NAME(COLS) - 1) / NAME(COLS);
    for (int64_t from = 0, depth = NAME(depth)(g->k); from < g->k; from += depth) {
        int64_t k = g->k - from < depth ? g->k - from : depth;
        NAME(pack_b)(g, from, k, col, n, first, last, packed_b + from * n_panels * NAME(COLS));
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

static size_t NAME(packed_b_bytes)(int64_t n, int64_t k, int n_parts)
{
    int64_t columns = NAME(columns_at_once)(n, k) + NAME(COLS) * (n_parts + 1);
    return (size_t)(columns * k) * sizeof(T) + 64;
}

/* How evenly n items are shared. */
static double NAME(balance)(int64_t n, int n_parts)
{
    return (double)n / (double)((n + n_parts - 1) / n_parts * n_parts);
}

/* Whether all of a that is used at a time stays in the L2 cache; a that must be packed also has to fit in its place. */
static bool NAME(has_small_a)(const stk_gemm *g)
{
    int64_t used = (g->m + ROWS) * NAME(depth)(g->k);
    return used <= (g->a_col != 1 ? 1 : 2) * (int64_t)NAME(MC) * NAME(KC);
}

/* Sharing n needs no second call, and b stays in the cache of the core that packed it; but every part packs all of a,
 * where a has to be packed. */
static bool NAME(shares_rows)(const stk_gemm *g, int n_parts)
{
    int64_t m_tiles = (g->m + LOW_ROWS - 1) / LOW_ROWS, n = NAME(columns_at_once)(g->n, g->k);
    double by_rows = NAME(balance)(m_tiles, n_parts);
    double by_cols = NAME(balance)((n + NAME(COLS) - 1) / NAME(COLS), n_parts);
    if (by_rows > by_cols + 0.05 || by_cols > by_rows + 0.05) return by_rows > by_cols;
    return g->a_col != 1 ? g->m > g->n : g->m > 4 * g->n;
}

static void NAME(pack_share)(const stk_gemm *g, int64_t col, int64_t n, int i_part, int n_parts)
{
    int64_t begin, end;
    stk_cpu_share((n + NAME(COLS) - 1) / NAME(COLS), 1, i_part, n_parts, &begin, &end);
    NAME(pack_panels)(g, col, n, begin, end, g->packed_b);
}

static void NAME(multiply_rows)(const stk_gemm *g, int64_t col, int64_t n, int i_part, int n_parts)
{
    int64_t begin, end;
    stk_cpu_share(g->m, 2, i_part, n_parts, &begin, &end);
    NAME(multiply)(g, begin, end, col, n, g->packed_b);
}

static void NAME(multiply_columns)(const stk_gemm *g, int64_t col, int64_t n, int i_part, int n_parts)
{
    int64_t begin, end;
    stk_cpu_share(n, NAME(COLS), i_part, n_parts, &begin, &end);
    /* Parts pack side by side: shares are whole panels. */
    T *own = (T *)g->packed_b + begin * g->k;
    NAME(pack_panels)(g, col + begin, end - begin, 0, (end - begin + NAME(COLS) - 1) / NAME(COLS), own);
    NAME(multiply)(g, 0, g->m, col + begin, end - begin, own);
}

/* For a small a; see matmul.h. */
static void NAME(multiply_panels)(const stk_gemm *g, int64_t col, int64_t n, int i_part, int n_parts, bool *has_a)
{
    int64_t begin, end, depth = NAME(depth)(g->k);
    T *panel = g->packed_b;
    stk_cpu_share(n, NAME(COLS), i_part, n_parts, &begin, &end);
    for (int64_t from = 0; from < g->k; from += depth) {
        int64_t k = g->k - from < depth ? g->k - from : depth;
        if (!*has_a) NAME(pack_rows)(g, 0, g->m, from, k);
        *has_a = depth >= g->k;
        for (int64_t at = begin; at < end; at += NAME(COLS)) {
            int64_t width = end - at < NAME(COLS) ? end - at : NAME(COLS);
            NAME(pack_b)(g, from, k, col + at, width, 0, 1, panel);
            NAME(multiply_panel)(g, 0, g->m, from, k, panel, col + at, width, g->a_col != 1);
        }
    }
}

/* For matmul_isa.c, once for each T, after matmul_tmpl.h: products of blocks that lie in the cache; see matmul.h. */

#define BLOCK_FN(name, height, ahead, row_step, col_step)                                                              \
    static __attribute__((noinline)) void NAME(name)(int64_t k, const T *a, int64_t a_step, const T *b, T *c,          \
                                                     int64_t c_row, int adds)                                          \
    {                                                                                                                  \
        NAME(tile)(height, ahead, k, a, row_step, col_step, b, c, c_row, adds);                                        \
    }
BLOCK_FN(high_ahead, ROWS, AHEAD, a_step, 1)
BLOCK_FN(three_here, 3, 0, a_step, 1)
BLOCK_FN(two_here, 2, 0, a_step, 1)
BLOCK_FN(one_here, 1, 0, a_step, 1)
BLOCK_FN(high_across, ROWS, 0, 1, a_step)
BLOCK_FN(low_across, LOW_ROWS, 0, 1, a_step)
BLOCK_FN(three_across, 3, 0, 1, a_step)
BLOCK_FN(two_across, 2, 0, 1, a_step)
BLOCK_FN(one_across, 1, 0, 1, a_step)
#undef BLOCK_FN

/* The tile of that many rows; across: the rows of a are neighbours. */
static NAME(tile_fn) NAME(block_tile)(int64_t height, bool across)
{
    static const NAME(tile_fn) rest[2][4] = {{NULL, NAME(one_here), NAME(two_here), NAME(three_here)},
                                             {NULL, NAME(one_across), NAME(two_across), NAME(three_across)}};
    if (height == ROWS) return across ? NAME(high_across) : NAME(high_here);
    if (height == LOW_ROWS) return across ? NAME(low_across) : NAME(low_here);
    return rest[across][height];
}

static int64_t NAME(block_elements)(int64_t k, int64_t n)
{
    return (n + NAME(COLS) - 1) / NAME(COLS) * NAME(COLS) * k;
}

static void NAME(pack_block)(const void *src, int64_t b_row, int64_t b_col, int64_t k, int64_t n, void *dst)
{
    const T *b = src;
    T *to = dst;
    int64_t n_whole = b_col == 1 ? n / NAME(COLS) : 0;
    for (int64_t l = 0; l < k && n_whole; l++)
        for (int64_t p = 0; p < n_whole; p++)
            memcpy(to + (p * k + l) * NAME(COLS), b + l * b_row + p * NAME(COLS), sizeof(T) * NAME(COLS));
    for (int64_t at = n_whole * NAME(COLS); at < n; at += NAME(COLS)) {
        int64_t width = n - at < NAME(COLS) ? n - at : NAME(COLS);
        NAME(pack_panel)(b + at * b_col, b_row, b_col, k, width, to + at * k);
    }
}

/* One tile, with what the diagonal leaves of it. */
static void NAME(block_step)(const stk_gemm_block *g, int64_t row, int64_t height, int64_t col)
{
    bool across = g->a_col != 1;
    int64_t a_step = across ? g->a_col : g->a_row, from = 0, to = g->k;
    int64_t width = g->n - col < NAME(COLS) ? g->n - col : NAME(COLS);
    int adds = g->adds;
    if (g->skip == STK_SKIP_COLUMNS && col > row + height - 1 + g->diagonal) return;
    if (g->skip == STK_SKIP_END && to > row + height + g->diagonal) to = row + height + g->diagonal;
    if (g->skip == STK_SKIP_START) {
        /* The first block of queries that sees these keys writes, the following ones add. */
        adds = row < g->diagonal;
        from = adds ? 0 : row - g->diagonal;
    }
    if (to <= from) return;
    const T *a = (const T *)g->a + row * g->a_row + from * g->a_col;
    const T *b = (const T *)g->b + col * g->depth + from * NAME(COLS);
    T *c = (T *)g->c + row * g->c_row + col;
    NAME(tile_fn) tile = NAME(block_tile)(height, across);
    if (g->is_large && row == 0 && height == ROWS && !across) tile = NAME(high_ahead);
    if (width < NAME(COLS))
        NAME(edge_tile)(tile, to - from, a, a_step, b, c, g->c_row, adds, height, width);
    else
        tile(to - from, a, a_step, b, c, g->c_row, adds);
}

/* Like next_height, with tiles that are no higher than what is left. */
static int64_t NAME(block_height)(int64_t m)
{
    int64_t height = NAME(next_height)(m);
    return height <= m ? height : m >= LOW_ROWS ? LOW_ROWS : m;
}

static void NAME(multiply_block)(const stk_gemm_block *g)
{
    for (int64_t col = 0; col < g->n; col += NAME(COLS))
        for (int64_t row = 0, height; row < g->m; row += height) {
            height = NAME(block_height)(g->m - row);
            NAME(block_step)(g, row, height, col);
        }
}

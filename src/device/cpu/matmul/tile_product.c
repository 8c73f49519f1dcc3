/* See tile_product.h. */
#include "device/cpu/matmul/tile_product.h"

#include "base/align.h"
#include "base/hash.h"
#include "device/cpu/simd/stream.h"

enum {
    B_WIDTH = STK_BF16_B_WIDTH,
    SQUARE = STK_BF16_SQUARE,
    TILE_ROWS = 6,
    PANEL_BYTES = 384 * 1024, /* of b, which stays in the second-level cache */
    BLOCK_BYTES = 384 * 1024, /* of a, next to it */
    MOST_ROWS = 192,
    FEWEST_ROWS = 48,
    AMX_MOST_DEPTH = 3072, /* 192 KiB a panel; sums of f32 that come and go cost more than what it does not reuse */
    FAR_BYTES = 1 << 20,   /* of a result that a core's second-level cache should not be filled with */
    AMX_BLOCK_BYTES = 768 * 1024,
    AMX_MOST_ROWS = 512,
    AMX_STEPS_TO_PART = 23, /* a panel that fills the first-level cache */
    AMX_MANY_PANELS = 12,   /* that many that packing rows of a pays that lie in tiles already */
    B_BYTES = 6 * 1024 * 1024,
    LARGE = 1 << 24, /* elements of a matrix that no cache holds */
    LEAST_ROWS = 96, /* with fewer, packing b takes too large a share */
    LINE = 64
};

#ifdef STK_ISA_X86
const stk_tile_fns *stk_bf16_tile_of(stk_isa isa)
{
    return stk_isa_has_bf16(isa) ? &stk_bf16_tile_avx512bf16 : NULL;
}

const stk_tile_fns *stk_f32_tile_of(stk_isa isa)
{
    return isa == STK_ISA_AVX512 ? &stk_f32_tile_avx512 : NULL;
}
#else
const stk_tile_fns *stk_bf16_tile_of(stk_isa isa)
{
    (void)isa;
    return NULL;
}

const stk_tile_fns *stk_f32_tile_of(stk_isa isa)
{
    (void)isa;
    return NULL;
}
#endif

/* n cut into parts of equal length, a multiple of grain, none longer than most. */
static int64_t even_part(int64_t n, int64_t most, int64_t grain)
{
    int64_t n_parts = (n + most - 1) / most;
    return stk_round_up_i64((n + n_parts - 1) / n_parts, grain);
}

/* By AMX. Small products are over before threads have met twice. */
static bool tiles_pay(const stk_product_shape *s)
{
    enum { LEAST = 32, LEAST_WORK = 1 << 24 };
    bool is_one = s->n_batch <= 1 && (!s->adds || s->out == STK_F32);
    if (is_one && s->in == STK_BF16 && stk_product_may_fault(s->k)) return true;
    return is_one && s->in == STK_BF16 && s->m >= LEAST && s->n >= LEAST && s->k >= LEAST &&
           (double)s->m * (double)s->n * (double)s->k >= LEAST_WORK;
}

/* On Intel's (measured on family 6, model 207), a multiply-add of bf16 in vectors takes four times as long as one of
 * f32, and does twice the work. */
stk_tile_kind stk_tile_product_kind(stk_isa isa, stk_dtype in)
{
    if (in == STK_F32) return stk_f32_tile_of(isa) ? STK_TILES_F32 : STK_TILES_NONE;
    if (in != STK_BF16) return STK_TILES_NONE;
    if (stk_amx_of(isa)) return STK_TILES_AMX;
    if (!stk_bf16_tile_of(isa)) return STK_TILES_NONE;
    return stk_isa_is_of_intel() ? STK_TILES_F32 : STK_TILES_BF16;
}

/* Tiles of bf16 in vectors. */
static bool pairs_pay(const stk_product_shape *s)
{
    /* A wide c of a transposed a: b, the larger one, would be packed for few rows; oneDNN takes 0.95x of the time. */
    if (s->transpose_a && s->n > s->m) return false;
    /* A vocabulary's weight, and its gradient: the memory's speed counts, and packing reads and writes it once more. */
    if (s->k * s->n > LARGE || (s->transpose_a && s->m * s->n > LARGE)) return false;
    bool is_one = s->n_batch <= 1 && (!s->adds || s->out == STK_F32);
    return is_one && s->m >= LEAST_ROWS && s->n >= B_WIDTH && s->k >= B_WIDTH;
}

/* bf16 that is widened: what else there is takes twice as long. */
static bool widening_pays(const stk_product_shape *s)
{
    enum { LEAST = 16, LEAST_WORK = 1 << 20 };
    bool is_one = s->n_batch <= 1 && (!s->adds || s->out == STK_F32);
    return is_one && s->m >= LEAST && s->n >= LEAST && s->k >= LEAST && s->m * s->n * s->k >= LEAST_WORK;
}

bool stk_tile_product_pays(stk_isa isa, const stk_product_shape *s)
{
    switch (stk_tile_product_kind(isa, s->in)) {
    case STK_TILES_AMX: return tiles_pay(s);
    case STK_TILES_BF16: return pairs_pay(s);
    case STK_TILES_F32: return s->in == STK_BF16 && widening_pays(s);
    default: return false;
    }
}

bool stk_tile_product_covers(stk_isa isa, const stk_product_shape *s)
{
    bool is_one = s->n_batch <= 1 && (!s->adds || s->out == STK_F32) && s->m > 0 && s->n > 0 && s->k > 0;
    /* A vector by a matrix: memory's speed counts, and packing costs more than all else. Few rows or columns that are
     * widened: no less. */
    enum { FEW_ROWS = 8, FEW_COLUMNS = 16 };
    switch (stk_tile_product_kind(isa, s->in)) {
    case STK_TILES_AMX: return is_one && s->m > 1 && s->n > 1;
    case STK_TILES_F32: return is_one && s->m > FEW_ROWS && s->n > FEW_COLUMNS;
    case STK_TILES_BF16: return pairs_pay(s);
    default: return false;
    }
}

/* Blocks of rows: about as many for each thread, and more than one, so that a core that is slow for a while gets fewer.
 */
static void cut_parts(stk_tile_product *p)
{
    int64_t bytes = p->amx ? AMX_BLOCK_BYTES : BLOCK_BYTES, most = p->amx ? AMX_MOST_ROWS : MOST_ROWS;
    int64_t rows = bytes / (p->size * p->depth), n_panels = p->columns / p->width, n_rows, n_columns = 1;
    rows = rows > most ? most : rows < FEWEST_ROWS ? FEWEST_ROWS : rows;
    n_rows = stk_round_up_i64((p->shape.m + rows - 1) / rows, p->n_threads);
    if (p->shape.m / n_rows < FEWEST_ROWS / 2) n_rows = (p->shape.m + rows - 1) / rows;
    if (n_rows < 2 * p->n_threads) n_columns = (2 * p->n_threads + n_rows - 1) / n_rows;
    p->row_parts = (int)n_rows;
    p->column_parts = (int)(n_columns < n_panels ? n_columns : n_panels);
}

stk_tile_product stk_tile_product_cut(stk_isa isa, stk_tile_kind kind, const stk_product_shape *shape, int n_threads)
{
    stk_tile_product p = {.shape = *shape, .n_threads = n_threads, .in_size = (int64_t)stk_dtype_bytes(shape->in)};
    bool is_f32 = kind == STK_TILES_F32;
    p.size = is_f32 ? (int64_t)sizeof(float) : (int64_t)sizeof(uint16_t);
    p.tiles = is_f32 ? stk_f32_tile_of(isa) : stk_bf16_tile_of(isa);
    p.amx = kind == STK_TILES_AMX ? stk_amx_of(isa) : NULL;
    p.width = p.amx ? STK_AMX_SIDE : B_WIDTH;
    p.grain = p.amx ? STK_AMX_DEPTH : is_f32 ? 1 : 2;
    p.depth = even_part(shape->k, p.amx ? AMX_MOST_DEPTH : PANEL_BYTES / (B_WIDTH * p.size), p.grain);
    p.columns = even_part(shape->n, B_BYTES / (p.size * p.depth) / p.width * p.width, p.width);
    cut_parts(&p);
    p.b_bytes = (size_t)(p.columns * p.depth * p.size);
    if (shape->out == STK_BF16 && p.depth < shape->k)
        p.sums_bytes = (size_t)stk_round_up_i64(shape->m * p.columns * (int64_t)sizeof(float), LINE);
    /* A part has at most one tile's rows more than its even share. */
    int64_t grain = p.amx ? STK_AMX_SIDE : TILE_ROWS;
    int64_t rows = stk_round_up_i64((shape->m + p.row_parts - 1) / p.row_parts + grain, SQUARE);
    p.a_step = stk_round_up_i64(p.depth, SQUARE) + SQUARE;
    bool moves_a = shape->transpose_a || p.size != p.in_size;
    int64_t n_a = p.amx ? rows * p.depth : moves_a ? rows * p.a_step : 0;
    p.a_bytes = (size_t)stk_round_up_i64(n_a * p.size, LINE);
    if (p.amx) p.partial_bytes = (size_t)(stk_round_up_i64(rows, STK_AMX_SIDE) * STK_AMX_SIDE) * sizeof(float);
    return p;
}

size_t stk_tile_product_scratch_bytes(const stk_tile_product *p)
{
    return p->b_bytes + p->sums_bytes + (p->a_bytes + p->partial_bytes) * (size_t)p->n_threads;
}

/* Kept panels lie block by block, in the order of a run. */
size_t stk_tile_product_kept_bytes(const stk_tile_product *p)
{
    return (size_t)(stk_round_up_i64(p->shape.n, p->width) * stk_round_up_i64(p->shape.k, p->grain) * p->size);
}

uint64_t stk_tile_product_kept_layout(const stk_tile_product *p)
{
    const stk_product_shape *s = &p->shape;
    const int64_t about[] = {s->k, s->n, s->b_step, s->transpose_b, p->columns, p->depth, p->width};
    return stk_hash64(about, sizeof(about), 'p');
}

/* The columns [col, col + n) and the part [l, l + k) of what is summed over. */
typedef struct product_step {
    const stk_tile_product *p;
    const char *a, *b;
    const float *wide_b; /* what is packed instead of b; NULL: b */
    char *packed;        /* panels of b */
    const float *bias;
    void *c;
    char *scratch;
    int64_t col, n, l, k;
} product_step;

/* As stk_cpu_share, but with the longer parts first: threads that take parts by turns end together. */
static void share_evenly(int64_t n, int64_t grain, int i_part, int n_parts, int64_t *begin, int64_t *end)
{
    int64_t n_grains = (n + grain - 1) / grain, each = n_grains / n_parts, n_longer = n_grains % n_parts;
    *begin = (i_part * each + (i_part < n_longer ? i_part : n_longer)) * grain;
    *end = *begin + (each + (i_part < n_longer)) * grain;
    if (*begin > n) *begin = n;
    if (*end > n) *end = n;
}

/* Parts are rows of b as they lie in memory: of k, or, where b is transposed or k is short, of n. */
static void pack_part(const void *task, int i_part, int n_parts)
{
    const product_step *t = task;
    const stk_product_shape *s = &t->p->shape;
    const stk_tile_fns *tiles = t->p->tiles;
    int64_t row = s->transpose_b ? 1 : s->b_step, col = s->transpose_b ? s->b_step : 1,
            depth = stk_round_up_i64(t->k, t->p->grain);
    int64_t l = 0, end_l = t->k, j = 0, end_j = t->n, width = t->p->width;
    if (!s->transpose_b && t->k >= n_parts * SQUARE)
        share_evenly(t->k, SQUARE, i_part, n_parts, &l, &end_l);
    else
        share_evenly(t->n, width, i_part, n_parts, &j, &end_j);
    int64_t k = end_l - l, n = end_j - j, at = (t->l + l) * row + (t->col + j) * col;
    void *to = t->packed + (j * depth + l * width) * t->p->size;
    if (k <= 0 || n <= 0) return;
    if (t->p->amx)
        t->p->amx->pack_b(t->wide_b ? &(stk_amx_source){t->wide_b + at, row, col, true}
                                    : &(stk_amx_source){t->b + at * t->p->in_size, row, col, false},
                          k, n, depth, to);
    else if (t->wide_b && s->in == STK_BF16)
        tiles->pack_rounded(t->wide_b + at, row, col, k, n, B_WIDTH, depth, to);
    else if (t->wide_b)
        tiles->pack_far(t->wide_b + at, row, col, k, n, B_WIDTH, depth, to);
    else if (t->p->size != t->p->in_size)
        tiles->pack_widened((const uint16_t *)(const void *)t->b + at, row, col, k, n, B_WIDTH, depth, to);
    else
        tiles->pack_far(t->b + at * t->p->in_size, row, col, k, n, B_WIDTH, depth, to);
}

/* Where rows from `row` and columns from `col` on, counted from the step's first one, are read and written. */
static void set_sums(const product_step *t, int64_t row, int64_t col, stk_tile_block *g)
{
    const stk_product_shape *s = &t->p->shape;
    int64_t at = row * s->c_step + t->col + col;
    bool is_first = t->l == 0, is_last = t->l + t->k == s->k;
    g->bias = is_last && t->bias ? t->bias + t->col + col : NULL;
    if (s->out == STK_F32) {
        g->c = (float *)t->c + at;
        g->add = is_first && !s->adds ? NULL : g->c;
        g->c_row = g->add_row = s->c_step;
        return;
    }
    float *sums = (float *)(void *)(t->scratch + t->p->b_bytes) + row * t->p->columns + col;
    g->add = is_first ? NULL : sums;
    g->add_row = t->p->columns;
    g->c = is_last ? NULL : sums;
    g->rounded_c = is_last ? (uint16_t *)t->c + at : NULL;
    g->c_row = is_last ? s->c_step : t->p->columns;
}

/* Each tile of the first panel finds its rows of a fetched by the one before, and each panel is fetched during the one
 * before: others than this core have them, or memory has. */
static void set_ahead(int64_t size, bool reads_a, bool has_next, stk_tile_block *g)
{
    int64_t panel = B_WIDTH * g->depth * size, a_row = g->a_row * size;
    g->ahead = reads_a ? (const char *)g->a + TILE_ROWS * a_row : has_next ? (const char *)g->b + panel : NULL;
    g->ahead_bytes = reads_a ? g->m * a_row : panel;
}

/* This worker's block of a. */
static void *own_rows(const product_step *t)
{
    const stk_tile_product *p = t->p;
    size_t thread_bytes = p->a_bytes + p->partial_bytes;
    return t->scratch + p->b_bytes + p->sums_bytes + thread_bytes * (size_t)stk_cpu_worker();
}

/* Whether tiles may read rows of a where they are: whole tiles that begin with a line. */
static bool lies_in_tiles(const product_step *t, const void *a, int64_t m)
{
    const stk_product_shape *s = &t->p->shape;
    return !s->transpose_a && m % STK_AMX_ROWS == 0 && t->k % STK_AMX_DEPTH == 0 && s->a_step % STK_AMX_DEPTH == 0 &&
           (uintptr_t)a % LINE == 0;
}

/* Rows of a from `row` on where tiles read them: where they lie, or packed. */
static stk_amx_block find_rows(const product_step *t, int64_t row, int64_t m)
{
    const stk_product_shape *s = &t->p->shape;
    stk_amx_block g = {.m = m, .n_steps = stk_round_up_i64(t->k, STK_AMX_DEPTH) / STK_AMX_DEPTH};
    stk_amx_source a = {t->a, s->a_step, 1, false};
    if (s->transpose_a) a.row = 1, a.col = s->a_step;
    const void *from = t->a + (row * a.row + t->l * a.col) * t->p->in_size;
    if (lies_in_tiles(t, from, m)) {
        g.a = from;
        g.a_row = s->a_step;
        g.a_step = STK_AMX_DEPTH;
        g.a_block = STK_AMX_SIDE * s->a_step;
        return g;
    }
    void *packed = own_rows(t);
    a.x = from;
    t->p->amx->pack_a(&a, m, t->k, packed);
    g.a = packed;
    g.a_step = STK_AMX_STEP;
    g.a_block = g.n_steps * STK_AMX_STEP;
    return g;
}

/* Tiles read rows that lie far apart more slowly from the second-level cache: the first panel packs them on the way. */
static void take_packed(stk_amx_block *g)
{
    g->a = g->packs_a;
    g->packs_a = NULL;
    g->a_row = 0;
    g->a_step = STK_AMX_STEP;
    g->a_block = g->n_steps * STK_AMX_STEP;
}

/* The same by AMX. */
static void multiply_tiles(const product_step *t, int64_t row, int64_t end, int64_t col, int64_t end_col)
{
    const stk_tile_product *p = t->p;
    const stk_product_shape *s = &p->shape;
    int64_t depth = stk_round_up_i64(t->k, p->grain), panel = p->width * depth;
    stk_amx_block g = find_rows(t, row, end - row);
    g.fetches_a = g.a_row != 0;
    bool has_many = end_col - col >= AMX_MANY_PANELS * p->width;
    if (g.a_row && has_many) g.packs_a = own_rows(t);
    if (has_many && g.n_steps >= AMX_STEPS_TO_PART) g.partial = (float *)(void *)((char *)own_rows(t) + p->a_bytes);
    g.is_far = t->l + t->k == s->k && s->m * s->n * (int64_t)stk_dtype_bytes(s->out) >= FAR_BYTES;
    for (; col < end_col; col += p->width) {
        stk_tile_block to = {.m = end - row};
        set_sums(t, row, col, &to);
        g.n = end_col - col < p->width ? end_col - col : p->width;
        g.b = (const uint16_t *)(const void *)(t->packed + col * depth * p->size);
        g.bias = to.bias, g.add = to.add, g.add_row = to.add_row;
        g.c = to.c, g.rounded_c = to.rounded_c, g.c_row = to.c_row;
        g.ahead = col + p->width < end_col ? g.b + panel : NULL;
        g.ahead_bytes = panel * (int64_t)sizeof(*g.b);
        p->amx->multiply(&g);
        g.fetches_a = false;
        if (g.packs_a) take_packed(&g);
    }
}

/* The block's rows of a where tiles read them; whether that is where they lie. */
static bool set_rows(const product_step *t, int64_t row, stk_tile_block *g)
{
    const stk_tile_product *p = t->p;
    const stk_product_shape *s = &p->shape;
    bool narrow = p->size != p->in_size;
    if (!s->transpose_a && !narrow) {
        g->a = t->a + (row * s->a_step + t->l) * p->size;
        g->a_row = s->a_step;
        return true;
    }
    int64_t at = s->transpose_a ? t->l * s->a_step + row : row * s->a_step + t->l;
    const void *a = t->a + at * p->in_size;
    void *rows = own_rows(t);
    if (!s->transpose_a)
        p->tiles->widen(a, s->a_step, g->m, t->k, rows, p->a_step);
    else if (narrow)
        p->tiles->transpose_widened(a, s->a_step, t->k, g->m, rows, p->a_step);
    else
        p->tiles->transpose(a, s->a_step, t->k, g->m, rows, p->a_step);
    g->a = rows;
    g->a_row = p->a_step;
    return false;
}

static void multiply_part(const void *task, int i_part, int n_parts)
{
    const product_step *t = task;
    const stk_tile_product *p = t->p;
    const stk_product_shape *s = &p->shape;
    int64_t depth = stk_round_up_i64(t->k, p->grain), row, end, col, end_col;
    (void)n_parts;
    share_evenly(s->m, p->amx ? STK_AMX_SIDE : TILE_ROWS, i_part / p->column_parts, p->row_parts, &row, &end);
    stk_cpu_share(t->n, p->width, i_part % p->column_parts, p->column_parts, &col, &end_col);
    if (row >= end || col >= end_col) return;
    if (p->amx) {
        multiply_tiles(t, row, end, col, end_col);
        return;
    }
    stk_tile_block g = {.m = end - row, .k = t->k, .depth = depth};
    bool lies_there = set_rows(t, row, &g);
    bool is_large = s->out == STK_F32 && stk_is_past_caches((size_t)(s->m * s->n) * sizeof(float));
    /* Tiles of pairs were not measured with it. */
    g.is_far = p->size == (int64_t)sizeof(float) && is_large && !s->adds && t->l + t->k == s->k;
    int64_t first_col = col;
    /* Panel by panel, so that each stays in the cache for all rows of the block. */
    for (; col < end_col; col += B_WIDTH) {
        g.n = end_col - col < B_WIDTH ? end_col - col : B_WIDTH;
        g.b = t->packed + col * depth * p->size;
        set_sums(t, row, col, &g);
        set_ahead(p->size, col == first_col && lies_there, col + B_WIDTH < end_col, &g);
        p->tiles->multiply(&g);
    }
}

/* The next part of the sum, or the first one of the next columns; false at the end. */
static bool next_step(product_step *t)
{
    const stk_product_shape *s = &t->p->shape;
    t->l += t->k;
    if (t->l == s->k) {
        t->l = 0;
        t->col += t->n;
    }
    t->n = s->n - t->col < t->p->columns ? s->n - t->col : t->p->columns;
    t->k = s->k - t->l < t->p->depth ? s->k - t->l : t->p->depth;
    return t->col < s->n;
}

enum { PACKS_A_THREAD = 4 };

/* Of the step's panels. */
static int64_t bytes_of(const product_step *t)
{
    return stk_round_up_i64(t->n, t->p->width) * stk_round_up_i64(t->k, t->p->grain) * t->p->size;
}

void stk_tile_product_pack(const stk_tile_product *p, const float *b, void *packed_b)
{
    product_step t = {.p = p, .wide_b = b, .packed = packed_b};
    while (next_step(&t)) {
        stk_cpu_parallel(PACKS_A_THREAD * p->n_threads, pack_part, &t);
        t.packed += bytes_of(&t);
    }
}

void stk_tile_product_run(const stk_tile_product *p, const void *a, const void *b, const void *packed_b,
                          const float *bias, void *c, void *scratch)
{
    product_step t = {.p = p, .a = a, .b = b, .bias = bias, .c = c, .scratch = scratch};
    /* Kept panels are only read. */
    t.packed = packed_b ? (char *)(uintptr_t)packed_b : scratch;
    while (next_step(&t)) {
        if (!packed_b) stk_cpu_parallel(PACKS_A_THREAD * p->n_threads, pack_part, &t);
        stk_cpu_parallel(p->row_parts * p->column_parts, multiply_part, &t);
        if (packed_b) t.packed += bytes_of(&t);
    }
}

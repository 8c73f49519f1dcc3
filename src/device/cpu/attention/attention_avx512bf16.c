/* Attention of bf16 where the processor multiplies that: attention_tmpl.h's blocks with products by bf16_tile.h, or by
 * tiles (attention_amx_tmpl.h).
 * Scores, exponentials and all sums are f32; weights and the scores' gradients are rounded to bf16 where the next
 * product reads them, in place: bf16 of a row then lie where the row of f32 began.
 */
#include "device/cpu/attention/attention.h"

#ifdef __AVX512BF16__

#include <immintrin.h>
#include <string.h>

#include "device/cpu/attention/attention_rows_avx512bf16.h"
#include "device/cpu/matmul/bf16_tile.h"

/* Queries at a time, whole tiles of two; and floats from row to row of a tile of scores: not a power of two, so that
 * its rows share no sets of the cache. */
enum { BLOCK_QUERIES = 64, TILE_ROW = KEYS + 16, GRAD_ROW = GRAD_KEYS + 16 };

/* --- products by pairs --- */

static void begin_nothing(void)
{
}

static void pack_pairs(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, uint16_t *to)
{
    stk_bf16_tile_avx512bf16.pack(x, row, col, k, n, STK_BF16_B_WIDTH, to);
}

static void pack_turned_pairs(const uint16_t *x, int64_t row, int64_t k, int64_t n, uint16_t *to)
{
    stk_bf16_tile_avx512bf16.pack(x, row, 1, k, n, STK_BF16_A_WIDTH, to);
}

static void multiply_pairs(const stk_tile_block *block)
{
    stk_bf16_tile_avx512bf16.multiply(block);
}

const stk_attention_products stk_attention_by_pairs = {
    .rows = 1,
    .depth = 1,
    .begin = begin_nothing,
    .end = begin_nothing,
    .pack_b = pack_pairs,
    .pack_turned = pack_turned_pairs,
    .multiply = multiply_pairs,
};

/* --- places --- */

/* Elements that a block of [n,D] takes, packed either way round; an odd number of rows gets one more. */
static int64_t packed_elements(int64_t n, int64_t d)
{
    return pad(n + 1) * pad(d + 1);
}

/* Into the cache, rows [begin, begin + n) of x: they are far apart, which no prefetcher of the processor follows. */
static void fetch_rows(const stk_attention_call *call, const void *x, int64_t n_rows, int64_t i_sample, int64_t h,
                       int64_t begin, int64_t n)
{
    enum { PER_LINE = 64 / sizeof(uint16_t) };
    for (int64_t i = begin; i < begin + n; i++) {
        const uint16_t *row = (const uint16_t *)x + row_at(call, n_rows, i_sample, i, h);
        for (int64_t e = 0; e < call->size.d; e += PER_LINE)
            _mm_prefetch((const char *)(row + e), _MM_HINT_T0);
    }
}

/* Into the second-level cache while there is something to compute: row i of each of the next head's inputs; and to be
 * written, of this head's outputs. Inlined, since compilers leave out calls of what only fetches. */
static inline __attribute__((always_inline)) void fetch_next(const stk_attention_call *call, int64_t i_sample,
                                                             int64_t h, int64_t i)
{
    enum { PER_LINE = 64 / sizeof(uint16_t), MOST = 5 };
    stk_attention_sizes z = call->size;
    const void *of_queries[] = {call->q, call->dy, call->dy ? call->y : NULL}, *of_keys[] = {call->k, call->v};
    void *to_queries[] = {call->dy ? call->dq : call->y}, *to_keys[] = {call->dk, call->dv};
    int64_t n = h + 1 < z.h ? i_sample : i_sample + 1, next = h + 1 < z.h ? h + 1 : 0;
    int64_t t = row_at(call, z.t, n, i, next), s = row_at(call, z.s, n, i, next);
    int64_t to_t = row_at(call, z.t, i_sample, i, h), to_s = row_at(call, z.s, i_sample, i, h);
    for (int64_t e = 0; e < z.d; e += PER_LINE) {
        for (int k = 0; k < 3 && n < z.n && i < z.t; k++)
            if (of_queries[k]) _mm_prefetch((const char *)of_queries[k] + 2 * (t + e), _MM_HINT_T1);
        for (int k = 0; k < 2 && n < z.n && i < z.s; k++)
            _mm_prefetch((const char *)of_keys[k] + 2 * (s + e), _MM_HINT_T1);
        if (i < z.t) __builtin_prefetch((char *)to_queries[0] + 2 * (to_t + e), 1, 2);
        for (int k = 0; k < 2 && to_keys[k] && i < z.s; k++)
            __builtin_prefetch((char *)to_keys[k] + 2 * (to_s + e), 1, 2);
    }
}

/* --- what products read --- */

/* Rows [begin, begin + n) of x as rows to multiply by: as they lie where all that is read is there, else copied to
 * spare, behind zeros. Sets the distance between them. */
static const uint16_t *find_rows(const stk_attention_call *call, const void *x, int64_t i_sample, int64_t h,
                                 int64_t begin, int64_t n, uint16_t *spare, int64_t *row)
{
    int64_t d = call->size.d, rows = call->products->rows, depth = stk_round_up_i64(d, call->products->depth);
    const uint16_t *from = (const uint16_t *)x + row_at(call, call->size.t, i_sample, begin, h);
    *row = step_of(call);
    if (n % rows == 0 && d == depth) return from;
    memset(spare, 0, (size_t)(stk_round_up_i64(n, rows) * depth) * sizeof(*spare));
    for (int64_t i = 0; i < n; i++)
        memcpy(spare + i * depth, from + i * *row, (size_t)d * sizeof(*spare));
    *row = depth;
    return spare;
}

/* n rows of x [S,D] from s on, where those of keys that do not count are zeros: NaN in them then reaches nobody. */
static const uint16_t *find_keys(const stk_attention_call *call, const void *x, int64_t i_sample, int64_t h, int64_t s,
                                 int64_t n, uint16_t *spare, int64_t *row)
{
    int64_t d = call->size.d;
    const uint16_t *from = (const uint16_t *)x + row_at(call, call->size.s, i_sample, s, h);
    const uint8_t *mask = call->mask ? call->mask + i_sample * call->size.s + s : NULL;
    *row = step_of(call);
    if (!mask || !memchr(mask, 0, (size_t)n)) return from;
    for (int64_t i = 0; i < n; i++)
        if (mask[i])
            memcpy(spare + i * d, from + i * *row, (size_t)d * sizeof(*spare));
        else
            memset(spare + i * d, 0, (size_t)d * sizeof(*spare));
    *row = d;
    return spare;
}

/* Keys or values as a block of D rows and n columns, as one of n rows and D columns, or as both. */
static void pack_keys(const stk_attention_call *call, const void *x, int64_t i_sample, int64_t h, int64_t s, int64_t n,
                      uint16_t *spare, uint16_t *across, uint16_t *along)
{
    int64_t row;
    const uint16_t *from = find_keys(call, x, i_sample, h, s, n, spare, &row);
    if (across) call->products->pack_b(from, 1, row, call->size.d, n, across);
    if (along) call->products->pack_b(from, row, 1, n, call->size.d, along);
}

/* --- forward --- */

typedef struct rows {
    float most[BLOCK_QUERIES], sum[BLOCK_QUERIES]; /* of each query so far; most times log2(e) */
    float *tile;                                   /* [BLOCK_QUERIES][TILE_ROW] */
    float *acc;                                    /* [BLOCK_QUERIES][pad(D)] */
    uint16_t *k, *v;                               /* packed, in blocks of KEYS keys */
    uint16_t *spare;                               /* [KEYS][pad(D)] */
    round_keys keys;                               /* of dropout */
} rows;

/* Row i of the tile: what has come together in it so far becomes that of a larger maximum. */
static void lower_row(const stk_attention_call *call, rows *r, int64_t i, float factor)
{
    float *acc = r->acc + i * pad(call->size.d);
    r->sum[i] *= factor;
#pragma omp simd
    for (int64_t e = 0; e < call->size.d; e++)
        acc[e] *= factor;
}

/* The tile, m queries from t on against n keys from s on, from scores to exponentials of 16 bits. Each pass goes over
 * all rows, so that one need not wait for what another adds up. */
static void soften_rows(const stk_attention_call *call, rows *r, int64_t i_sample, int64_t h, int64_t t, int64_t m,
                        int64_t s, int64_t n)
{
    float most[BLOCK_QUERIES];
    row_keys keys = {.n = n};
    uint32_t keeps[MOST_KEYS / 32];
    float scale = (float)call->scale * LOG2_E;
    if (call->mask) keys.mask = call->mask + i_sample * call->size.s + s;
    if (call->rate > 0) keys.keeps = keeps;
    for (int64_t i = 0; i < m; i++) {
        keys.seen = count_seen(call, t + i, s, n);
        most[i] = find_most(&keys, scale, r->tile + i * TILE_ROW);
    }
    for (int64_t i = 0; i < m; i++) {
        float before = r->most[i];
        if (!(most[i] > before)) most[i] = before;
        r->most[i] = most[i];
        /* Where all scores are -inf, 2^(-inf - -inf) would not be 0. */
        if (most[i] == -INFINITY) most[i] = 0;
        if (s > 0) lower_row(call, r, i, exp_f32((before - most[i]) * LN_2));
    }
    for (int64_t i = 0; i < m; i++) {
        keys.seen = count_seen(call, t + i, s, n);
        if (s == 0) fetch_next(call, i_sample, h, t + i);
        if (keys.keeps) draw_kept(call, &r->keys, i_sample, h, t + i, s, keys.seen, keeps);
        r->sum[i] += exp_row(&keys, scale, most[i], r->tile + i * TILE_ROW);
    }
}

static void finish_row(const stk_attention_call *call, const rows *r, int64_t i_sample, int64_t h, int64_t i, int64_t t,
                       bool sees)
{
    uint16_t *y = (uint16_t *)call->y + row_at(call, call->size.t, i_sample, t, h);
    float factor = call->rate >= 1 ? 0 : (float)(1 / (1 - call->rate)) / r->sum[i];
    if (sees)
        write_row(call->size.d, r->acc + i * pad(call->size.d), factor, y);
    else
        memset(y, 0, (size_t)call->size.d * sizeof(*y));
    float *lse = (float *)call->lse + (i_sample * call->size.h + h) * call->size.t + t;
    *lse = sees ? r->most[i] * LN_2 + logf(r->sum[i]) : -INFINITY;
}

/* m queries from t on against all keys that they see. */
static void forward_block(const stk_attention_call *call, int64_t i_sample, int64_t h, int64_t t, int64_t m, rows *r)
{
    int64_t d = call->size.d, end = call->causal ? least(call->size.s, t + m) : call->size.s;
    int64_t first = find_first_key(call, i_sample), block = packed_elements(KEYS, d);
    int64_t q_row;
    const uint16_t *q = find_rows(call, call->q, i_sample, h, t, m, r->spare, &q_row);
    for (int64_t i = 0; i < m; i++) {
        r->most[i] = -INFINITY;
        r->sum[i] = 0;
    }
    for (int64_t s = 0; s < end; s += KEYS) {
        int64_t n = least(KEYS, end - s), depth = least(KEYS, call->size.s - s);
        stk_tile_block g = {.m = m, .n = n, .k = d, .a = q, .a_row = q_row, .b = r->k + s / KEYS * block};
        g.depth = d;
        g.c = r->tile;
        g.c_row = TILE_ROW;
        g.skip = call->causal ? STK_SKIP_COLUMNS : STK_SKIP_NONE;
        g.diagonal = t - s;
        call->products->multiply(&g);
        soften_rows(call, r, i_sample, h, t, m, s, n);
        g = (stk_tile_block){
            .m = m, .n = d, .k = n, .a = (const uint16_t *)(const void *)r->tile, .a_row = 2 * TILE_ROW};
        g.b = r->v + s / KEYS * block;
        g.depth = depth;
        g.add = s > 0 ? r->acc : NULL;
        g.c = r->acc;
        g.add_row = g.c_row = pad(d);
        g.skip = call->causal ? STK_SKIP_END : STK_SKIP_NONE;
        g.diagonal = t - s;
        call->products->multiply(&g);
    }
    for (int64_t i = 0; i < m; i++)
        finish_row(call, r, i_sample, h, i, t + i, first < (call->causal ? least(end, t + i + 1) : end));
}

static int64_t count_blocks(int64_t n, int64_t block)
{
    return (n + block - 1) / block;
}

static size_t forward_bytes(const stk_attention_call *call)
{
    int64_t d = call->size.d, n_packed = 2 * count_blocks(call->size.s, KEYS) * packed_elements(KEYS, d);
    return (size_t)(BLOCK_QUERIES * (TILE_ROW + pad(d))) * sizeof(float) +
           (size_t)(n_packed + KEYS * pad(d)) * sizeof(uint16_t);
}

static void forward(const stk_attention_call *call, int64_t n, int64_t h, int64_t begin, int64_t end, void *scratch)
{
    int64_t d = call->size.d, n_keys = call->causal ? least(call->size.s, end) : call->size.s;
    int64_t block = packed_elements(KEYS, d);
    rows r = {.keys = find_round_keys(call->key), .tile = scratch, .acc = (float *)scratch + BLOCK_QUERIES * TILE_ROW};
    r.k = (uint16_t *)(void *)(r.acc + BLOCK_QUERIES * pad(d));
    r.v = r.k + count_blocks(call->size.s, KEYS) * block;
    r.spare = r.v + count_blocks(call->size.s, KEYS) * block;
    call->products->begin();
    for (int64_t s = 0; s < n_keys; s += KEYS) {
        int64_t here = least(KEYS, call->size.s - s);
        fetch_rows(call, call->k, call->size.s, n, h, s, here);
        fetch_rows(call, call->v, call->size.s, n, h, s, here);
        pack_keys(call, call->k, n, h, s, here, r.spare, r.k + s / KEYS * block, NULL);
        pack_keys(call, call->v, n, h, s, here, r.spare, NULL, r.v + s / KEYS * block);
    }
    fetch_rows(call, call->q, call->size.t, n, h, begin, least(end - begin, KEYS));
    for (int64_t t = begin; t < end; t += BLOCK_QUERIES)
        forward_block(call, n, h, t, least(BLOCK_QUERIES, end - t), &r);
    call->products->end();
}

/* --- backward --- */

/* What is used at a time, all in scratch. */
typedef struct grad_blocks {
    float *dot;                                             /* [T]: dy . y */
    float *tile, *dtile;                                    /* [BLOCK_QUERIES][GRAD_ROW] */
    float *dq, *dk, *dv;                                    /* [T][pad(D)], and [GRAD_KEYS][pad(D)] */
    uint16_t *k_across, *k_along, *v_across, *q_along, *dy; /* packed */
    uint16_t *turned;                                       /* a tile whose rows are keys */
    uint16_t *spare, *spare_dy;                             /* [GRAD_KEYS][pad(D)], [BLOCK_QUERIES][pad(D)] */
    round_keys keys;                                        /* of dropout */
} grad_blocks;

/* Lays the blocks out; the bytes that they take. */
static size_t lay_out(const stk_attention_call *call, char *scratch, grad_blocks *out)
{
    enum { LINE = 64, N_FLOATS = 6, N_HALVES = 8 };
    int64_t d = call->size.d, of_tile = BLOCK_QUERIES * GRAD_ROW, of_keys = packed_elements(GRAD_KEYS, d);
    int64_t of_queries = packed_elements(BLOCK_QUERIES, d),
            turned = stk_bf16_panel_elements(BLOCK_QUERIES, GRAD_KEYS, STK_BF16_A_WIDTH);
    int64_t floats[N_FLOATS] = {call->size.t, of_tile, of_tile, (call->size.t + STK_ATTENTION_MOST_ROWS) * pad(d),
                                GRAD_KEYS * pad(d)};
    floats[N_FLOATS - 1] = GRAD_KEYS * pad(d);
    int64_t halves[N_HALVES] = {
        of_keys, of_keys, of_keys, of_queries, of_queries, turned, GRAD_KEYS * pad(d), BLOCK_QUERIES * pad(d)};
    float **float_to[N_FLOATS] = {&out->dot, &out->tile, &out->dtile, &out->dq, &out->dk, &out->dv};
    uint16_t **half_to[N_HALVES] = {&out->k_across, &out->k_along, &out->v_across, &out->q_along,
                                    &out->dy,       &out->turned,  &out->spare,    &out->spare_dy};
    size_t at = 0;
    for (int i = 0; i < N_FLOATS + N_HALVES; i++) {
        int64_t n = i < N_FLOATS ? floats[i] : halves[i - N_FLOATS];
        if (scratch && i < N_FLOATS) *float_to[i] = (float *)(void *)(scratch + at);
        if (scratch && i >= N_FLOATS) *half_to[i - N_FLOATS] = (uint16_t *)(void *)(scratch + at);
        at += ((size_t)n * (i < N_FLOATS ? sizeof(float) : sizeof(uint16_t)) + LINE - 1) / LINE * LINE;
    }
    return at;
}

static size_t backward_bytes(const stk_attention_call *call)
{
    grad_blocks blocks;
    return lay_out(call, NULL, &blocks);
}

/* Row i of the tiles: query t against n keys from s on. */
static void grad_row(const stk_attention_call *call, const grad_blocks *b, int64_t i_sample, int64_t h, int64_t i,
                     int64_t t, int64_t s, int64_t n)
{
    row_keys keys = {.n = n};
    uint32_t keeps[MOST_KEYS / 32];
    grad_numbers numbers = {.scale = (float)call->scale, .dot = b->dot[t], .factor = 1};
    numbers.lse = ((const float *)call->lse)[(i_sample * call->size.h + h) * call->size.t + t];
    if (call->mask) keys.mask = call->mask + i_sample * call->size.s + s;
    keys.seen = numbers.lse == -INFINITY && keys.mask ? 0 : count_seen(call, t, s, n);
    if (call->rate > 0) {
        numbers.factor = call->rate >= 1 ? 0 : (float)(1 / (1 - call->rate));
        draw_kept(call, &b->keys, i_sample, h, t, s, keys.seen, keeps);
        keys.keeps = keeps;
    }
    grad_scores(&keys, &numbers, b->tile + i * GRAD_ROW, b->dtile + i * GRAD_ROW);
}

/* sum = tile' b, whose rows are n keys, over m queries, or sum += that. */
static void add_turned(const stk_attention_call *call, const grad_blocks *block, const float *tile, const uint16_t *b,
                       int64_t m, int64_t n, int64_t diagonal, bool adds, float *sum)
{
    int64_t row = pad(call->size.d);
    call->products->pack_turned((const uint16_t *)(const void *)tile, 2 * GRAD_ROW, m, n, block->turned);
    stk_tile_block g = {
        .m = n, .n = call->size.d, .k = m, .a = block->turned, .b = b, .depth = m, .add = adds ? sum : NULL, .c = sum};
    g.add_row = g.c_row = row;
    g.diagonal = diagonal;
    g.skip = call->causal ? STK_SKIP_START : STK_SKIP_NONE;
    call->products->multiply(&g);
}

/* Of the first block of queries that sees keys from s on. */
static int64_t first_query(const stk_attention_call *call, int64_t s)
{
    return call->causal ? s / BLOCK_QUERIES * BLOCK_QUERIES : 0;
}

/* m queries from t on against n packed keys from s on. */
static void grad_block(const stk_attention_call *call, const grad_blocks *b, int64_t i_sample, int64_t h, int64_t t,
                       int64_t m, int64_t s, int64_t n)
{
    int64_t d = call->size.d, q_row, dy_row;
    bool adds = t > first_query(call, s);
    const uint16_t *q = find_rows(call, call->q, i_sample, h, t, m, b->spare, &q_row);
    const uint16_t *dy = find_rows(call, call->dy, i_sample, h, t, m, b->spare_dy, &dy_row);
    call->products->pack_b(q, q_row, 1, m, d, b->q_along);
    call->products->pack_b(dy, dy_row, 1, m, d, b->dy);
    stk_tile_block g = {.m = m, .n = n, .k = d, .a = q, .a_row = q_row, .b = b->k_across, .depth = d, .c = b->tile};
    g.c_row = GRAD_ROW;
    g.diagonal = t - s;
    g.skip = call->causal ? STK_SKIP_COLUMNS : STK_SKIP_NONE;
    call->products->multiply(&g);
    g.a = dy;
    g.a_row = dy_row;
    g.b = b->v_across;
    g.c = b->dtile;
    call->products->multiply(&g);
    for (int64_t i = 0; i < m; i++) {
        if (s == 0) fetch_next(call, i_sample, h, t + i);
        grad_row(call, b, i_sample, h, i, t + i, s, n);
    }
    add_turned(call, b, b->tile, b->dy, m, n, t - s, adds, b->dv);
    add_turned(call, b, b->dtile, b->q_along, m, n, t - s, adds, b->dk);
    g = (stk_tile_block){.m = m, .n = d, .k = n, .a = (const uint16_t *)(const void *)b->dtile, .a_row = 2 * GRAD_ROW};
    g.b = b->k_along;
    g.depth = n;
    g.c = b->dq + t * pad(d);
    g.add = s > 0 ? g.c : NULL;
    g.add_row = g.c_row = pad(d);
    g.diagonal = t - s;
    g.skip = call->causal ? STK_SKIP_END : STK_SKIP_NONE;
    call->products->multiply(&g);
}

/* n rows of sums to rows [begin, begin + n) of the head; NULL: zeros. */
static void write_rows(const stk_attention_call *call, const float *sum, void *to, int64_t n_rows, int64_t i_sample,
                       int64_t h, int64_t begin, int64_t n)
{
    int64_t d = call->size.d;
    for (int64_t i = 0; i < n; i++) {
        uint16_t *row = (uint16_t *)to + row_at(call, n_rows, i_sample, begin + i, h);
        if (sum)
            write_row(d, sum + i * pad(d), 1, row);
        else
            memset(row, 0, (size_t)d * sizeof(*row));
    }
}

static void dot_rows(const stk_attention_call *call, int64_t n, int64_t h, float *out)
{
    for (int64_t t = 0; t < call->size.t; t++) {
        int64_t row = row_at(call, call->size.t, n, t, h);
        out[t] = dot_row(call->size.d, (const uint16_t *)call->dy + row, (const uint16_t *)call->y + row);
    }
}

static void backward(const stk_attention_call *call, int64_t n, int64_t h, void *scratch)
{
    grad_blocks b;
    stk_attention_sizes z = call->size;
    int64_t reached = z.t == 0 ? 0 : call->causal ? least(z.s, z.t) : z.s, row = pad(z.d);
    lay_out(call, scratch, &b);
    b.keys = find_round_keys(call->key);
    call->products->begin();
    dot_rows(call, n, h, b.dot);
    if (!reached) memset(b.dq, 0, (size_t)(z.t * row) * sizeof(float));
    for (int64_t s = 0; s < reached; s += GRAD_KEYS) {
        int64_t n_keys = least(GRAD_KEYS, z.s - s);
        pack_keys(call, call->k, n, h, s, n_keys, b.spare, b.k_across, b.k_along);
        pack_keys(call, call->v, n, h, s, n_keys, b.spare, b.v_across, NULL);
        for (int64_t t = first_query(call, s); t < z.t; t += BLOCK_QUERIES)
            grad_block(call, &b, n, h, t, least(BLOCK_QUERIES, z.t - t), s, n_keys);
        write_rows(call, b.dk, call->dk, z.s, n, h, s, n_keys);
        write_rows(call, b.dv, call->dv, z.s, n, h, s, n_keys);
        reached = reached < s + n_keys ? s + n_keys : reached;
    }
    call->products->end();
    write_rows(call, b.dq, call->dq, z.t, n, h, 0, z.t);
    /* Keys that nobody sees. */
    write_rows(call, NULL, call->dk, z.s, n, h, reached, z.s - reached);
    write_rows(call, NULL, call->dv, z.s, n, h, reached, z.s - reached);
}

const stk_attention_fns stk_attention_avx512bf16 = {forward, backward, forward_bytes, backward_bytes};

#else
typedef int stk_attention_is_not_built_for_bf16;
#endif

/* What amx.h declares, by the processor's tiles or the model's: files *_silicon.c and *_model.c include it. */
#ifndef STK_DEVICE_CPU_AMX_AMX_TMPL_H
#define STK_DEVICE_CPU_AMX_AMX_TMPL_H

#include <string.h>

#include "device/cpu/amx/amx.h"
#include "device/cpu/amx/amx_tile.h"
#include "device/cpu/simd/stream.h"

enum {
    ROWS = STK_AMX_ROWS,
    DEPTH = STK_AMX_DEPTH,
    SIDE = STK_AMX_SIDE,
    TILE = ROWS * DEPTH, /* bf16 of a tile */
    ROW_BYTES = STK_AMX_ROW_BYTES,
    LINE = 64
};

typedef uint16_t halves __attribute__((vector_size(64), aligned(2), may_alias));
typedef uint16_t few_halves __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint32_t pairs __attribute__((vector_size(64), aligned(4), may_alias));
typedef float floats __attribute__((vector_size(64), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
/* Not every file that includes this has a use for all. */
#define PART static __attribute__((unused))

/* --- rounding --- */

/* f32 to the nearest bf16, NaN to NaN. */
INLINE few_halves round_pairs(pairs bits)
{
    pairs is_nan = (pairs)((bits & 0x7fffffff) > 0x7f800000);
    pairs rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = (bits >> 16 & 0x8000) | 0x7fc0;
    return __builtin_convertvector((is_nan & nan) | (~is_nan & rounded), few_halves);
}

/* The same by the processor, which takes denormal numbers for 0. */
INLINE few_halves round_sums(floats x)
{
#ifdef __AVX512BF16__
    return (few_halves)_mm512_cvtneps_pbh((__m512)x);
#else
    pairs bits = (pairs)x, is_small = (pairs)((bits & 0x7f800000) == 0);
    return round_pairs((is_small & bits & 0x80000000) | (~is_small & bits));
#endif
}

INLINE halves round_both(floats low, floats high)
{
#ifdef __AVX512BF16__
    return (halves)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
#else
    return __builtin_shufflevector(round_sums(low), round_sums(high), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                   15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
#endif
}

/* 32 of f32 as a cast rounds them. The processor does the same but for denormal numbers and NaN. */
INLINE halves round_wide(pairs low, pairs high)
{
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
    enum { NAN_OR_DENORMAL = 0x01 | 0x20 | 0x80 };
    __mmask16 odd = _mm512_fpclass_ps_mask((__m512)low, NAN_OR_DENORMAL);
    odd |= _mm512_fpclass_ps_mask((__m512)high, NAN_OR_DENORMAL);
    if (__builtin_expect(odd == 0, 1)) return round_both((floats)low, (floats)high);
#endif
    return __builtin_shufflevector(round_pairs(low), round_pairs(high), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                   14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
}

/* --- packing --- */

/* 64 bytes, past the caches where they begin a line and are not read again soon. */
INLINE void write_line(void *to, halves line, bool is_far)
{
    if (is_far) {
        _Alignas(LINE) halves aligned = line;
        stk_stream(to, &aligned, sizeof(aligned));
    } else {
        *(halves *)to = line;
    }
}

/* Elements at to at + 31, of which n exist; the others are 0. */
INLINE halves load_halves(const stk_amx_source *s, int64_t at, int64_t n)
{
    halves x = {0};
    if (n <= 0) return x;
    if (!s->is_wide) {
        const uint16_t *from = (const uint16_t *)s->x + at;
        if (n >= DEPTH) return *(const halves *)from;
#ifdef __AVX512BW__
        return (halves)_mm512_maskz_loadu_epi16(((__mmask32)1 << n) - 1, from);
#else
        memcpy(&x, from, (size_t)n * sizeof(*from));
        return x;
#endif
    }
    const float *from = (const float *)s->x + at;
    pairs bits[2] = {{0}, {0}};
    if (n >= DEPTH) return round_wide(*(const pairs *)from, *(const pairs *)(from + ROWS));
    memcpy(bits, from, (size_t)n * sizeof(*from));
    return round_wide(bits[0], bits[1]);
}

/* Two rows as pairs: those of the first 16 columns, and those of the last. */
INLINE void join_rows(halves first, halves second, pairs *left, pairs *right)
{
    *left = (pairs)__builtin_shufflevector(first, second, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40,
                                           9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
    *right = (pairs)__builtin_shufflevector(first, second, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23,
                                            55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
}

/* 16 x 16 pairs: x[i][l] becomes to[l * to_row + i]; to_row in elements of 16 bits. */
INLINE void transpose_pairs(pairs x[ROWS], uint16_t *to, int64_t to_row, bool is_far)
{
    pairs y[ROWS];
    for (int i = 0; i < ROWS; i += 2) {
        y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
    for (int i = 0; i < ROWS; i += 4)
        for (int j = 0; j < 2; j++) {
            pairs a = y[i + j], b = y[i + j + 2];
            x[i + 2 * j] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
            x[i + 2 * j + 1] =
                __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        }
    /* Now x[4 g + r] has columns r, r + 4, r + 8 and r + 12 of rows 4 g to 4 g + 3. */
    for (int r = 0; r < 4; r++) {
        pairs low = __builtin_shufflevector(x[r], x[r + 4], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        pairs high =
            __builtin_shufflevector(x[r], x[r + 4], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        pairs low2 =
            __builtin_shufflevector(x[r + 8], x[r + 12], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        pairs high2 =
            __builtin_shufflevector(x[r + 8], x[r + 12], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        write_line(to + r * to_row,
                   (halves)__builtin_shufflevector(low, low2, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27),
                   is_far);
        write_line(
            to + (r + 4) * to_row,
            (halves)__builtin_shufflevector(high, high2, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27),
            is_far);
        write_line(
            to + (r + 8) * to_row,
            (halves)__builtin_shufflevector(low, low2, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31),
            is_far);
        write_line(
            to + (r + 12) * to_row,
            (halves)__builtin_shufflevector(high, high2, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31),
            is_far);
    }
}

/* Element (l, j) at number l * row + j * col. Both tiles of the step whose rows are l and on, columns j and on. */
INLINE void pack_step(const stk_amx_source *s, int64_t l, int64_t k, int64_t j, int64_t n, uint16_t *to)
{
    if (s->col == 1) {
        for (int i = 0; i < ROWS; i++) {
            int64_t at = l + 2 * i;
            halves first = load_halves(s, at * s->row + j, at < k ? n - j : 0);
            halves second = load_halves(s, (at + 1) * s->row + j, at + 1 < k ? n - j : 0);
            pairs left, right;
            join_rows(first, second, &left, &right);
            write_line(to + i * DEPTH, (halves)left, s->is_wide);
            write_line(to + TILE + i * DEPTH, (halves)right, s->is_wide);
        }
        return;
    }
    for (int half = 0; half < 2; half++) {
        pairs x[ROWS];
        for (int i = 0; i < ROWS; i++) {
            int64_t column = j + half * ROWS + i;
            x[i] = (pairs)load_halves(s, l + column * s->col, column < n ? k - l : 0);
        }
        transpose_pairs(x, to + half * TILE, DEPTH, s->is_wide);
    }
}

PART void pack_b(const stk_amx_source *s, int64_t k, int64_t n, int64_t depth, uint16_t *to)
{
    if (s->col == 1)
        for (int64_t l = 0; l < k; l += DEPTH)
            for (int64_t j = 0; j < n; j += SIDE)
                pack_step(s, l, k, j, n, to + j * depth + l * SIDE);
    else
        for (int64_t j = 0; j < n; j += SIDE)
            for (int64_t l = 0; l < k; l += DEPTH)
                pack_step(s, l, k, j, n, to + j * depth + l * SIDE);
    if (s->is_wide) stk_stream_end();
}

/* Step l of up to 32 rows of x [m,k]; element (i, l) is number i * row + l * col. */
INLINE void pack_rows(const stk_amx_source *s, int64_t first, int64_t m, int64_t l, int64_t k, uint16_t *to)
{
    int64_t n_rows = m - first > ROWS ? SIDE : ROWS;
    pairs left[ROWS], right[ROWS];
    for (int64_t i = 0; i < n_rows && s->col == 1; i++)
        *(halves *)(to + i * DEPTH) = load_halves(s, (first + i) * s->row + l, first + i < m ? k - l : 0);
    if (s->col == 1) return;
    for (int p = 0; p < ROWS; p++) {
        int64_t at = l + 2 * p;
        halves one = load_halves(s, at * s->col + first, at < k ? m - first : 0);
        halves next = load_halves(s, (at + 1) * s->col + first, at + 1 < k ? m - first : 0);
        join_rows(one, next, &left[p], &right[p]);
    }
    transpose_pairs(left, to, DEPTH, false);
    if (n_rows > ROWS) transpose_pairs(right, to + TILE, DEPTH, false);
}

/* In the order in which x lies in memory. */
PART void pack_a(const stk_amx_source *s, int64_t m, int64_t k, uint16_t *to)
{
    int64_t block = (k + DEPTH - 1) / DEPTH * STK_AMX_STEP;
    if (s->col == 1) {
        for (int64_t i = 0; i < m; i += SIDE, to += block)
            for (int64_t l = 0; l < k; l += DEPTH)
                pack_rows(s, i, m, l, k, to + l * SIDE);
        return;
    }
    for (int64_t l = 0; l < k; l += DEPTH)
        for (int64_t i = 0; i < m; i += SIDE)
            pack_rows(s, i, m, l, k, to + i / SIDE * block + l * SIDE);
}

PART void copy_places(const uint16_t *from, int64_t n, int64_t step, int64_t n_values, uint16_t *to, int64_t to_step,
                      int64_t chunk)
{
    stk_amx_source s = {.x = from, .col = 1};
    for (int64_t l = 0; l < n_values; l += DEPTH)
        for (int64_t i = 0; i < n && n_values - l < DEPTH; i++)
            *(halves *)(to + l / DEPTH * chunk + i * to_step) = load_halves(&s, i * step + l, n_values - l);
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l + DEPTH <= n_values; l += DEPTH)
            *(halves *)(to + l / DEPTH * chunk + i * to_step) = load_halves(&s, i * step + l, DEPTH);
}

/* --- sums to where they belong --- */

typedef struct sums_block {
    float sums[SIDE][SIDE];
} __attribute__((aligned(LINE))) sums_block;

INLINE floats load_floats(const float *from, int64_t n)
{
    floats x = {0};
    if (n >= ROWS) return *(const floats *)from;
    if (n > 0) memcpy(&x, from, (size_t)n * sizeof(*from));
    return x;
}

INLINE void write_row(const stk_amx_block *g, const float *sums, int64_t row, int64_t first_column,
                      const floats bias[2])
{
    for (int half = 0; half < 2; half++) {
        int64_t j = first_column + half * ROWS, n = g->n - j;
        floats x = *(const floats *)(sums + half * ROWS);
        if (n <= 0) return;
        if (g->add) x += load_floats(g->add + row * g->add_row + j, n);
        if (g->bias) x += bias[half];
        /* A NaN stays one. */
        if (g->has_relu) x = (floats)((pairs)x & ~(pairs)(x < 0));
        size_t count = (size_t)(n < ROWS ? n : ROWS);
        if (g->rounded_c) {
            few_halves y = round_sums(x);
            uint16_t *to = g->rounded_c + row * g->c_row + j;
            if (n >= ROWS)
                *(few_halves *)to = y;
            else
                memcpy(to, &y, count * sizeof(*to));
        } else {
            float *to = g->c + row * g->c_row + j;
            if (n >= ROWS)
                *(floats *)to = x;
            else
                memcpy(to, &x, count * sizeof(*to));
        }
    }
}

/* How whole rows are written: constants, so that each kind has a loop of its own. */
typedef struct row_kind {
    bool is_rounded, adds, has_relu, is_far;
} row_kind;

/* All 32 columns of a row: nearly always. */
INLINE void write_whole_row(const stk_amx_block *g, const float *sums, int64_t row, int64_t j, const floats bias[2],
                            row_kind kind)
{
    floats x[2] = {*(const floats *)sums, *(const floats *)(sums + ROWS)};
    for (int half = 0; half < 2; half++) {
        if (kind.adds) x[half] += *(const floats *)(g->add + row * g->add_row + j + half * ROWS);
        x[half] += bias[half];
        /* A NaN stays one. */
        if (kind.has_relu) x[half] = (floats)((pairs)x[half] & ~(pairs)(x[half] < 0));
    }
    if (kind.is_rounded) {
        write_line(g->rounded_c + row * g->c_row + j, round_both(x[0], x[1]), kind.is_far);
        return;
    }
    for (int half = 0; half < 2; half++)
        write_line(g->c + row * g->c_row + j + half * ROWS, (halves)x[half], kind.is_far);
}

/* Sums that wait to be written: rows [first, first + n) of a block, of which n_done are, from column j on. */
typedef struct waiting_sums {
    const sums_block *block;
    int64_t first, n, n_done, j;
    floats bias[2];
} waiting_sums;

/* kind: NULL where a row has fewer columns. */
INLINE void write_sums(const stk_amx_block *g, waiting_sums *w, int64_t n_rows, const row_kind *kind)
{
    int64_t end = w->n_done + n_rows < w->n ? w->n_done + n_rows : w->n;
    for (int64_t i = w->n_done; i < end; i++) {
        int64_t row = g->rows ? g->rows[w->first + i] : w->first + i;
        if (row < 0) continue;
        if (kind)
            write_whole_row(g, w->block->sums[i], row, w->j, w->bias, *kind);
        else
            write_row(g, w->block->sums[i], row, w->j, w->bias);
    }
    w->n_done = end;
}

static bool writes_lines(const stk_amx_block *g)
{
    uintptr_t at = g->rounded_c ? (uintptr_t)g->rounded_c : (uintptr_t)g->c;
    return g->is_far && at % LINE == 0 && g->c_row % (g->rounded_c ? DEPTH : ROWS) == 0;
}

static bool reaches_any(const int32_t *rows, int64_t n)
{
    int32_t all = -1;
    for (int64_t i = 0; i < n; i++)
        all &= rows[i];
    return all >= 0;
}

/* --- multiplying --- */

/* Bytes that are fetched on the way, some lines at each step. */
typedef struct fetching {
    const char *at, *end;
    int64_t lines;
} fetching;

INLINE fetching begin_fetching(const void *from, int64_t bytes, int64_t n_steps)
{
    if (!from || n_steps <= 0) return (fetching){0};
    return (fetching){from, (const char *)from + bytes, (bytes / LINE + n_steps - 1) / n_steps};
}

INLINE void fetch_some(fetching *f)
{
    for (int64_t l = 0; l < f->lines && f->at < f->end; l++, f->at += LINE)
        __builtin_prefetch(f->at, 0, 2);
}

/* A step of the next rows of a. */
INLINE void fetch_step(const uint16_t *x, int64_t row)
{
    for (int i = 0; i < SIDE; i++)
        __builtin_prefetch(x + i * row, 0, 2);
}

/* Lines of c, from column j on, that are written a visit later. */
INLINE void fetch_rows(const stk_amx_block *g, int64_t j, int64_t first, int64_t n)
{
    int64_t bytes = g->rounded_c ? (int64_t)sizeof(*g->rounded_c) : (int64_t)sizeof(*g->c);
    const char *c = (g->rounded_c ? (const char *)g->rounded_c : (const char *)g->c) + j * bytes;
    for (int64_t i = first; i < first + n; i++) {
        int64_t row = g->rows ? g->rows[i] : i;
        if (row < 0) continue;
        __builtin_prefetch(c + row * g->c_row * bytes, 1, 3);
        if (!g->rounded_c) __builtin_prefetch(c + row * g->c_row * bytes + LINE, 1, 3);
    }
}

/* What one visit of a block and a panel multiplies: steps [first, end). */
typedef struct visit {
    const uint16_t *a, *b;
    int64_t i, n, j;       /* rows [i, i + n); columns from j on */
    int64_t a_row, second; /* from row to row, and to the second 16 of them */
    int64_t first, end;
} visit;

INLINE visit make_visit(const stk_amx_block *g, int64_t i, int64_t j, int64_t first, int64_t end)
{
    visit v = {.i = i, .n = g->m - i < SIDE ? g->m - i : SIDE, .j = j, .first = first, .end = end};
    v.a_row = g->a_row ? g->a_row : DEPTH;
    v.a = g->a + (g->tiles ? g->tiles[i / ROWS] : i / SIDE * g->a_block);
    v.second = g->tiles && v.n > ROWS ? g->tiles[i / ROWS + 1] - g->tiles[i / ROWS] : ROWS * v.a_row;
    v.b = g->b + j / SIDE * g->b_panel + first * STK_AMX_STEP;
    return v;
}

/* While tiles multiply, the sums of the visit before are written: a step leaves time for some rows. What is not read
 * again soon must not take the first-level cache from what is: of panels that are met by all rows, the rows. */
INLINE void multiply_steps(const stk_amx_block *g, const visit *v, waiting_sums *waiting, fetching *ahead,
                           const row_kind *kind)
{
    const int64_t n_rows = (SIDE + v->end - v->first - 1) / (v->end - v->first);
    const int64_t a_bytes = v->a_row * (int64_t)sizeof(*v->a);
    const bool streams_a = !g->by_rows, streams_b = g->by_rows && g->n_steps > STK_AMX_NEAR_STEPS / 2;
    const bool fetches_a = g->fetches_a && v->i + SIDE < g->m;
    int64_t n_fetched = g->is_far ? v->n : 0;
    const uint16_t *b = v->b;
    uint16_t *packs = g->packs_a ? g->packs_a + (v->i / SIDE * g->n_steps + v->first) * STK_AMX_STEP : NULL;
    for (int64_t step = v->first; step < v->end; step++, b += STK_AMX_STEP) {
        const uint16_t *x = v->a + (g->steps ? g->steps[step] : step * g->a_step);
        if (streams_a)
            TILE_LOAD_ONCE(4, x, a_bytes);
        else
            TILE_LOAD(4, x, a_bytes);
        if (streams_b) {
            TILE_LOAD_ONCE(6, b, ROW_BYTES);
            TILE_LOAD_ONCE(7, b + TILE, ROW_BYTES);
        } else {
            TILE_LOAD(6, b, ROW_BYTES);
            TILE_LOAD(7, b + TILE, ROW_BYTES);
        }
        TILE_MULTIPLY(0, 4, 6);
        TILE_MULTIPLY(1, 4, 7);
        if (packs) TILE_STORE(4, packs, ROW_BYTES);
        if (v->n > ROWS) {
            if (streams_a)
                TILE_LOAD_ONCE(5, x + v->second, a_bytes);
            else
                TILE_LOAD(5, x + v->second, a_bytes);
            TILE_MULTIPLY(2, 5, 6);
            TILE_MULTIPLY(3, 5, 7);
            if (packs) TILE_STORE(5, packs + TILE, ROW_BYTES);
        }
        if (packs) packs += STK_AMX_STEP;
        fetch_some(ahead);
        if (fetches_a) fetch_step(x + g->a_block, v->a_row);
        write_sums(g, waiting, n_rows, kind);
        if (n_fetched < v->n) {
            int64_t n = v->n - n_fetched < n_rows ? v->n - n_fetched : n_rows;
            fetch_rows(g, v->j, v->i + n_fetched, n);
            n_fetched += n;
        }
    }
}

INLINE void begin_sums(const float *from)
{
    enum { SUMS = ROWS * ROWS };
    if (!from) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        return;
    }
    TILE_LOAD_ONCE(0, from, ROW_BYTES);
    TILE_LOAD_ONCE(1, from + SUMS, ROW_BYTES);
    TILE_LOAD_ONCE(2, from + 2 * SUMS, ROW_BYTES);
    TILE_LOAD_ONCE(3, from + 3 * SUMS, ROW_BYTES);
}

/* Sums of four tiles; next_16: from 16 columns to the next. */
INLINE void store_sums(float *to, int64_t row, int64_t next_16)
{
    int64_t row_bytes = row * (int64_t)sizeof(*to);
    TILE_STORE(0, to, row_bytes);
    TILE_STORE(1, to + next_16, row_bytes);
    to += next_16 == ROWS ? ROWS * row : 2 * next_16;
    TILE_STORE(2, to, row_bytes);
    TILE_STORE(3, to + next_16, row_bytes);
}

/* Sums on their way: two blocks take turns, of which one is written while the other is computed. */
typedef struct sums_turns {
    sums_block blocks[2];
    waiting_sums waiting;
    int now;
} sums_turns;

/* partial: of the block's sums so far, where there are more steps than one visit takes. */
INLINE void multiply_visit(const stk_amx_block *g, const visit *v, float *partial, sums_turns *t, fetching *ahead,
                           const row_kind *kind)
{
    enum { SUMS = ROWS * ROWS };
    begin_sums(v->first > 0 ? partial : NULL);
    if (v->end > v->first) multiply_steps(g, v, &t->waiting, ahead, kind);
    if (v->end < g->n_steps) {
        store_sums(partial, ROWS, SUMS);
        return;
    }
    write_sums(g, &t->waiting, SIDE, kind);
    sums_block *block = &t->blocks[t->now];
    t->now ^= 1;
    store_sums(block->sums[0], SIDE, ROWS);
    t->waiting = (waiting_sums){.block = block, .first = v->i, .n = v->n, .j = v->j};
    for (int half = 0; half < 2; half++) { /* -0 changes no sum */
        int64_t j = v->j + half * ROWS;
        t->waiting.bias[half] = g->bias ? load_floats(g->bias + j, g->n - j) : -(floats){0};
    }
}

/* Each panel meets all rows, some steps at a time, so that these steps of it stay in the first-level cache; then some
 * rows at a time, so that their sums stay in the second-level cache. */
INLINE void multiply_by_panels(const stk_amx_block *g, int64_t first_column, int64_t n_columns, sums_turns *t,
                               const row_kind *kind)
{
    int64_t n_parts = g->partial ? (g->n_steps + STK_AMX_NEAR_STEPS - 1) / STK_AMX_NEAR_STEPS : 1;
    int64_t n_blocks = (g->m + SIDE - 1) / SIDE, n_panels = (n_columns + SIDE - 1) / SIDE;
    if (n_parts < 1) n_parts = 1;
    fetching ahead = begin_fetching(g->ahead, g->ahead_bytes, n_blocks * n_panels * g->n_steps);
    const int64_t most = n_parts > 1 ? STK_AMX_PARTIAL_ROWS : (g->m > 0 ? g->m : 1);
    const int64_t n_shares = (g->m + most - 1) / most;
    for (int64_t turn = 0; turn < n_panels * n_shares * n_parts; turn++) {
        int64_t j = first_column + turn / n_parts / n_shares * SIDE, part = turn % n_parts;
        int64_t begin = turn / n_parts % n_shares * most, rows_end = begin + most < g->m ? begin + most : g->m;
        int64_t first = g->n_steps * part / n_parts, end = g->n_steps * (part + 1) / n_parts;
        for (int64_t i = begin; i < rows_end; i += SIDE) {
            visit v = make_visit(g, i, j, first, end);
            if (g->rows && !reaches_any(g->rows + i, v.n)) continue;
            multiply_visit(g, &v, g->partial ? g->partial + (i - begin) * SIDE : NULL, t, &ahead, kind);
        }
    }
}

/* Each 32 rows meet all panels, while the next ones are fetched. */
INLINE void multiply_by_rows(const stk_amx_block *g, int64_t first_column, int64_t n_columns, sums_turns *t,
                             const row_kind *kind)
{
    int64_t n_panels = (n_columns + SIDE - 1) / SIDE, bytes = g->a_block * (int64_t)sizeof(*g->a);
    for (int64_t i = 0; i < g->m; i += SIDE) {
        const uint16_t *next = i + SIDE < g->m ? g->a + (i / SIDE + 1) * g->a_block : NULL;
        fetching ahead = begin_fetching(next, bytes, n_panels * g->n_steps);
        for (int64_t j = first_column; j < first_column + n_columns; j += SIDE) {
            visit v = make_visit(g, i, j, 0, g->n_steps);
            multiply_visit(g, &v, NULL, t, &ahead, kind);
        }
    }
}

INLINE void multiply_kind(const stk_amx_block *g, int64_t first_column, int64_t n_columns, const row_kind *kind)
{
    sums_turns t;
    t.waiting = (waiting_sums){0};
    t.now = 0;
    if (g->by_rows)
        multiply_by_rows(g, first_column, n_columns, &t, kind);
    else
        multiply_by_panels(g, first_column, n_columns, &t, kind);
    write_sums(g, &t.waiting, SIDE, kind);
}

/* Columns of whole panels, by a loop for each kind. */
static void multiply_whole(const stk_amx_block *g, int64_t n)
{
    enum { ROUNDED = 1, ADDS = 2, RELU = 4, FAR = 8 };
    int kind =
        (g->rounded_c ? ROUNDED : 0) | (g->add ? ADDS : 0) | (g->has_relu ? RELU : 0) | (writes_lines(g) ? FAR : 0);
    switch (kind) {
    case ROUNDED: multiply_kind(g, 0, n, &(row_kind){true, false, false, false}); break;
    case ROUNDED | FAR: multiply_kind(g, 0, n, &(row_kind){true, false, false, true}); break;
    case ROUNDED | RELU: multiply_kind(g, 0, n, &(row_kind){true, false, true, false}); break;
    case ROUNDED | RELU | FAR: multiply_kind(g, 0, n, &(row_kind){true, false, true, true}); break;
    case 0: multiply_kind(g, 0, n, &(row_kind){false, false, false, false}); break;
    case FAR: multiply_kind(g, 0, n, &(row_kind){false, false, false, true}); break;
    case ADDS: multiply_kind(g, 0, n, &(row_kind){false, true, false, false}); break;
    case ADDS | FAR: multiply_kind(g, 0, n, &(row_kind){false, true, false, true}); break;
    case ADDS | ROUNDED: multiply_kind(g, 0, n, &(row_kind){true, true, false, false}); break;
    case ADDS | ROUNDED | FAR: multiply_kind(g, 0, n, &(row_kind){true, true, false, true}); break;
    default: multiply_kind(g, 0, n, NULL); break;
    }
}

PART void multiply(const stk_amx_block *g)
{
    int64_t whole = g->n / SIDE * SIDE;
    tiles_begin();
    if (whole) multiply_whole(g, whole);
    if (g->n > whole) multiply_kind(g, whole, g->n - whole, NULL);
    if (g->is_far) stk_stream_end();
    tiles_end();
}

#endif

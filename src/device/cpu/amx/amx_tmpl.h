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
INLINE void transpose_pairs(pairs x[ROWS], uint16_t *to, int64_t to_row)
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
        *(pairs *)(void *)(to + r * to_row) =
            __builtin_shufflevector(low, low2, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        *(pairs *)(void *)(to + (r + 4) * to_row) =
            __builtin_shufflevector(high, high2, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        *(pairs *)(void *)(to + (r + 8) * to_row) =
            __builtin_shufflevector(low, low2, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        *(pairs *)(void *)(to + (r + 12) * to_row) =
            __builtin_shufflevector(high, high2, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
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
            join_rows(first, second, (pairs *)(void *)(to + i * DEPTH), (pairs *)(void *)(to + TILE + i * DEPTH));
        }
        return;
    }
    for (int half = 0; half < 2; half++) {
        pairs x[ROWS];
        for (int i = 0; i < ROWS; i++) {
            int64_t column = j + half * ROWS + i;
            x[i] = (pairs)load_halves(s, l + column * s->col, column < n ? k - l : 0);
        }
        transpose_pairs(x, to + half * TILE, DEPTH);
    }
}

PART void pack_b(const stk_amx_source *s, int64_t k, int64_t n, int64_t depth, uint16_t *to)
{
    if (s->col == 1) {
        for (int64_t l = 0; l < k; l += DEPTH)
            for (int64_t j = 0; j < n; j += SIDE)
                pack_step(s, l, k, j, n, to + j * depth + l * SIDE);
        return;
    }
    for (int64_t j = 0; j < n; j += SIDE)
        for (int64_t l = 0; l < k; l += DEPTH)
            pack_step(s, l, k, j, n, to + j * depth + l * SIDE);
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
    transpose_pairs(left, to, DEPTH);
    if (n_rows > ROWS) transpose_pairs(right, to + TILE, DEPTH);
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

INLINE void write_row(const stk_amx_block *g, const float *sums, int64_t row, const floats bias[2])
{
    for (int half = 0; half < 2; half++) {
        int64_t n = g->n - half * ROWS, j = half * ROWS;
        floats x = *(const floats *)(sums + j);
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

/* How whole rows are written: constants, so that each kind has a loop of its own. */
typedef struct row_kind {
    bool is_rounded, adds, has_relu, is_far;
} row_kind;

/* All 32 columns of a row: nearly always. */
INLINE void write_whole_row(const stk_amx_block *g, const float *sums, int64_t row, const floats bias[2], row_kind kind)
{
    floats x[2] = {*(const floats *)sums, *(const floats *)(sums + ROWS)};
    for (int half = 0; half < 2; half++) {
        if (kind.adds) x[half] += *(const floats *)(g->add + row * g->add_row + half * ROWS);
        x[half] += bias[half];
        /* A NaN stays one. */
        if (kind.has_relu) x[half] = (floats)((pairs)x[half] & ~(pairs)(x[half] < 0));
    }
    if (kind.is_rounded) {
        write_line(g->rounded_c + row * g->c_row, round_both(x[0], x[1]), kind.is_far);
        return;
    }
    for (int half = 0; half < 2; half++)
        write_line(g->c + row * g->c_row + half * ROWS, (halves)x[half], kind.is_far);
}

INLINE void write_whole_rows(const stk_amx_block *g, const float (*sums)[SIDE], int64_t first, int64_t n, row_kind kind)
{
    floats bias[2];
    for (int half = 0; half < 2; half++) /* -0 changes no sum */
        bias[half] = g->bias ? *(const floats *)(g->bias + half * ROWS) : -(floats){0};
    for (int64_t i = 0; i < n; i++) {
        int64_t row = g->rows ? g->rows[first + i] : first + i;
        if (row >= 0) write_whole_row(g, sums[i], row, bias, kind);
    }
}

static bool writes_lines(const stk_amx_block *g)
{
    uintptr_t at = g->rounded_c ? (uintptr_t)g->rounded_c : (uintptr_t)g->c;
    return g->is_far && at % LINE == 0 && g->c_row % (g->rounded_c ? DEPTH : ROWS) == 0;
}

static void write_sums(const stk_amx_block *g, const float (*sums)[SIDE], int64_t first, int64_t n)
{
    enum { ROUNDED = 1, ADDS = 2, RELU = 4, FAR = 8 };
    int kind = g->n < SIDE ? -1
                           : (g->rounded_c ? ROUNDED : 0) | (g->add ? ADDS : 0) | (g->has_relu ? RELU : 0) |
                                 (writes_lines(g) ? FAR : 0);
    switch (kind) {
    case ROUNDED: write_whole_rows(g, sums, first, n, (row_kind){true, false, false, false}); return;
    case ROUNDED | FAR: write_whole_rows(g, sums, first, n, (row_kind){true, false, false, true}); return;
    case ROUNDED | RELU: write_whole_rows(g, sums, first, n, (row_kind){true, false, true, false}); return;
    case ROUNDED | RELU | FAR: write_whole_rows(g, sums, first, n, (row_kind){true, false, true, true}); return;
    case 0: write_whole_rows(g, sums, first, n, (row_kind){false, false, false, false}); return;
    case FAR: write_whole_rows(g, sums, first, n, (row_kind){false, false, false, true}); return;
    case ADDS: write_whole_rows(g, sums, first, n, (row_kind){false, true, false, false}); return;
    case ADDS | FAR: write_whole_rows(g, sums, first, n, (row_kind){false, true, false, true}); return;
    case ADDS | ROUNDED: write_whole_rows(g, sums, first, n, (row_kind){true, true, false, false}); return;
    case ADDS | ROUNDED | FAR: write_whole_rows(g, sums, first, n, (row_kind){true, true, false, true}); return;
    default: break;
    }
    floats bias[2] = {{0}, {0}};
    for (int half = 0; half < 2 && g->bias; half++)
        bias[half] = load_floats(g->bias + half * ROWS, g->n - half * ROWS);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = g->rows ? g->rows[first + i] : first + i;
        if (row >= 0) write_row(g, sums[i], row, bias);
    }
}

static bool reaches_any(const int32_t *rows, int64_t n)
{
    int32_t all = -1;
    for (int64_t i = 0; i < n; i++)
        all &= rows[i];
    return all >= 0;
}

/* --- multiplying --- */

/* Sums that wait to be written while the next ones are made: rows [row, row + n) of c, of which `done` are written. */
typedef struct late_sums {
    const sums_block *sums;
    int64_t row, n, done;
} late_sums;

static void write_late(const stk_amx_block *g, late_sums *late, int64_t n)
{
    if (n > late->n - late->done) n = late->n - late->done;
    if (n <= 0) return;
    write_sums(g, late->sums->sums + late->done, late->row + late->done, n);
    late->done += n;
}

/* Lines of c that are written a block later. */
INLINE void fetch_rows(const stk_amx_block *g, int64_t first, int64_t n)
{
    int64_t bytes = g->rounded_c ? (int64_t)sizeof(*g->rounded_c) : (int64_t)sizeof(*g->c);
    const char *c = g->rounded_c ? (const char *)g->rounded_c : (const char *)g->c;
    for (int64_t i = first; i < first + n; i++) {
        int64_t row = g->rows ? g->rows[i] : i;
        if (row < 0) continue;
        __builtin_prefetch(c + row * g->c_row * bytes, 1, 3);
        if (!g->rounded_c) __builtin_prefetch(c + row * g->c_row * bytes + LINE, 1, 3);
    }
}

/* A step of the next rows of a. */
INLINE void fetch_step(const uint16_t *x, int64_t row)
{
    for (int i = 0; i < SIDE; i++)
        __builtin_prefetch(x + i * row, 0, 2);
}

INLINE void store_block(sums_block *block)
{
    TILE_STORE(0, block->sums[0], SIDE * (int64_t)sizeof(float));
    TILE_STORE(1, block->sums[0] + ROWS, SIDE * (int64_t)sizeof(float));
    TILE_STORE(2, block->sums[ROWS], SIDE * (int64_t)sizeof(float));
    TILE_STORE(3, block->sums[ROWS] + ROWS, SIDE * (int64_t)sizeof(float));
}

PART void multiply(const stk_amx_block *g)
{
    sums_block block[2];
    late_sums late = {0};
    const char *ahead = g->ahead ? g->ahead : g->b;
    int64_t n_blocks = (g->m + SIDE - 1) / SIDE;
    int64_t n_visits = n_blocks * g->n_steps, lines = 0, at_once = 0;
    if (g->ahead && n_visits > 0) lines = (g->ahead_bytes / LINE + n_visits - 1) / n_visits;
    if (g->n_steps > 0) at_once = (SIDE + g->n_steps - 1) / g->n_steps;
    if (at_once < 2) at_once = 2;
    const char *ahead_end = ahead + (g->ahead ? g->ahead_bytes : 0);
    int64_t a_row = g->a_row ? g->a_row : DEPTH, a_bytes = a_row * (int64_t)sizeof(*g->a);
    int turn = 0;
    tiles_begin();
    for (int64_t i = 0; i < g->m; i += SIDE) {
        int64_t n = g->m - i < SIDE ? g->m - i : SIDE, fetched = g->is_far ? n : 0;
        bool has_second = n > ROWS;
        if (g->rows && !reaches_any(g->rows + i, n)) continue;
        const uint16_t *a = g->a + (g->tiles ? g->tiles[i / ROWS] : i / SIDE * g->a_block), *b = g->b;
        int64_t second = g->tiles && has_second ? g->tiles[i / ROWS + 1] - g->tiles[i / ROWS] : ROWS * a_row;
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        for (int64_t step = 0; step < g->n_steps; step++) {
            const uint16_t *x = a + (g->steps ? g->steps[step] : step * g->a_step);
            TILE_LOAD(4, x, a_bytes);
            TILE_LOAD(6, b, ROW_BYTES);
            TILE_LOAD(7, b + TILE, ROW_BYTES);
            TILE_MULTIPLY(0, 4, 6);
            TILE_MULTIPLY(1, 4, 7);
            if (has_second) {
                TILE_LOAD(5, x + second, a_bytes);
                TILE_MULTIPLY(2, 5, 6);
                TILE_MULTIPLY(3, 5, 7);
            }
            for (int64_t l = 0; l < lines && ahead < ahead_end; l++, ahead += LINE)
                __builtin_prefetch(ahead, 0, 2);
            if (g->fetches_a && i + SIDE < g->m) fetch_step(x + g->a_block, a_row);
            if (late.done < late.n) write_late(g, &late, at_once);
            int64_t n_fetch = n - fetched < at_once ? n - fetched : at_once;
            if (n_fetch > 0) fetch_rows(g, i + fetched, n_fetch);
            fetched += n_fetch;
            b += STK_AMX_STEP;
        }
        write_late(g, &late, SIDE);
        store_block(&block[turn]);
        late = (late_sums){&block[turn], i, n, 0};
        turn = !turn;
    }
    write_late(g, &late, SIDE);
    if (g->is_far) stk_stream_end();
    tiles_end();
}

#endif

/* Attention's products by tiles, for attention_amx_silicon.c and attention_amx_model.c. Sums go from tiles to where
 * they belong and back, whose rows and columns exist up to whole tiles.
 */
#ifndef STK_DEVICE_CPU_ATTENTION_ATTENTION_AMX_TMPL_H
#define STK_DEVICE_CPU_ATTENTION_ATTENTION_AMX_TMPL_H

#include "base/align.h"
#include "device/cpu/amx/amx_tmpl.h"
#include "device/cpu/attention/attention.h"

static void attention_pack_b(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, uint16_t *to)
{
    pack_b(&(stk_amx_source){.x = x, .row = row, .col = col}, k, n, stk_round_up_i64(k, DEPTH), to);
}

static void attention_pack_turned(const uint16_t *x, int64_t row, int64_t k, int64_t n, uint16_t *to)
{
    pack_a(&(stk_amx_source){.x = x, .row = 1, .col = row}, n, k, to);
}

/* Up to 32 x 32 sums. */
typedef struct attention_sums {
    const uint16_t *a, *b; /* tiles of the first step */
    int64_t a_row, a_step; /* in elements */
    int64_t n_steps;
    float *c;
    int64_t c_row;
    bool adds;
} attention_sums;

#define SUMS_AT(row, col) (s->c + (row)*ROWS * s->c_row + (col)*ROWS)

INLINE void multiply_sums(const attention_sums *s, bool has_second_row, bool has_second_col)
{
    const uint16_t *a = s->a, *b = s->b;
    int64_t a_bytes = s->a_row * (int64_t)sizeof(*a), c_bytes = s->c_row * (int64_t)sizeof(*s->c);
    if (s->adds) {
        TILE_LOAD(0, SUMS_AT(0, 0), c_bytes);
        if (has_second_col) TILE_LOAD(1, SUMS_AT(0, 1), c_bytes);
        if (has_second_row) TILE_LOAD(2, SUMS_AT(1, 0), c_bytes);
        if (has_second_row && has_second_col) TILE_LOAD(3, SUMS_AT(1, 1), c_bytes);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    }
    for (int64_t step = 0; step < s->n_steps; step++, a += s->a_step, b += STK_AMX_STEP) {
        TILE_LOAD(4, a, a_bytes);
        TILE_LOAD(6, b, ROW_BYTES);
        TILE_MULTIPLY(0, 4, 6);
        if (has_second_col) {
            TILE_LOAD(7, b + TILE, ROW_BYTES);
            TILE_MULTIPLY(1, 4, 7);
        }
        if (has_second_row) {
            TILE_LOAD(5, a + ROWS * s->a_row, a_bytes);
            TILE_MULTIPLY(2, 5, 6);
            if (has_second_col) TILE_MULTIPLY(3, 5, 7);
        }
    }
    TILE_STORE(0, SUMS_AT(0, 0), c_bytes);
    if (has_second_col) TILE_STORE(1, SUMS_AT(0, 1), c_bytes);
    if (has_second_row) TILE_STORE(2, SUMS_AT(1, 0), c_bytes);
    if (has_second_row && has_second_col) TILE_STORE(3, SUMS_AT(1, 1), c_bytes);
}

/* Of rows [i, i + m) of c: columns that count, and the part of the sum, in whole steps. */
typedef struct attention_range {
    int64_t n, first, end;
} attention_range;

INLINE attention_range find_range(const stk_tile_block *g, int64_t i, int64_t m)
{
    attention_range range = {.n = g->n, .end = stk_round_up_i64(g->k, DEPTH)};
    int64_t seen = i + m + g->diagonal, unseen = i - g->diagonal;
    if (seen < 0) seen = 0;
    if (g->skip == STK_SKIP_COLUMNS && seen < range.n) range.n = seen;
    if (g->skip == STK_SKIP_END && seen < range.end) range.end = stk_round_up_i64(seen, DEPTH);
    if (g->skip == STK_SKIP_START && unseen > 0) range.first = unseen / DEPTH * DEPTH;
    if (range.first > range.end) range.first = range.end;
    return range;
}

static void attention_multiply(const stk_tile_block *g)
{
    int64_t panel = stk_round_up_i64(g->depth, DEPTH) * SIDE, a_row = g->a_row ? g->a_row : DEPTH;
    attention_sums s = {.a_row = a_row, .c_row = g->c_row, .adds = g->add != NULL};
    s.a_step = g->a_row ? DEPTH : STK_AMX_STEP;
    int64_t a_block = g->a_row ? SIDE * a_row : stk_round_up_i64(g->k, DEPTH) * SIDE;
    for (int64_t i = 0; i < g->m; i += SIDE) {
        int64_t m = g->m - i < SIDE ? g->m - i : SIDE;
        attention_range range = find_range(g, i, m);
        s.a = (const uint16_t *)g->a + i / SIDE * a_block + range.first / DEPTH * s.a_step;
        s.n_steps = (range.end - range.first) / DEPTH;
        for (int64_t j = 0; j < range.n; j += SIDE) {
            s.b = (const uint16_t *)g->b + j / SIDE * panel + range.first * SIDE;
            s.c = g->c + i * g->c_row + j;
            if (m > ROWS && range.n - j > ROWS)
                multiply_sums(&s, true, true);
            else
                multiply_sums(&s, m > ROWS, range.n - j > ROWS);
        }
    }
}

/* clang-format off */
#define ATTENTION_PRODUCTS {ROWS, DEPTH, tiles_begin, tiles_end, attention_pack_b, attention_pack_turned, attention_multiply}
/* clang-format on */

#endif

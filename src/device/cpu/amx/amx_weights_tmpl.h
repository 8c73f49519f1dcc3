/* What amx_weights.h declares, by the tiles of amx_tmpl.h. */
#ifndef STK_DEVICE_CPU_AMX_AMX_WEIGHTS_TMPL_H
#define STK_DEVICE_CPU_AMX_AMX_WEIGHTS_TMPL_H

#include "device/cpu/amx/amx_tmpl.h"

/* 32 channels, of which n exist. */
INLINE void pack_channels(const uint16_t *const pixel[STK_AMX_PIXELS], int64_t at, int64_t n, bool transposes,
                          uint16_t *to, int64_t tile)
{
    pairs left[ROWS], right[ROWS];
    for (int i = 0; i < ROWS; i++) {
        halves first = load_halves(&(stk_amx_source){.x = pixel[2 * i]}, at, n);
        halves second = load_halves(&(stk_amx_source){.x = pixel[2 * i + 1]}, at, n);
        join_rows(first, second, &left[i], &right[i]);
        if (!transposes) {
            *(pairs *)(void *)(to + i * DEPTH) = left[i];
            *(pairs *)(void *)(to + tile + i * DEPTH) = right[i];
        }
    }
    if (!transposes) return;
    transpose_pairs(left, to, DEPTH, false);
    transpose_pairs(right, to + tile, DEPTH, false);
}

static void pack_pixels(const uint16_t *const pixel[STK_AMX_PIXELS], int64_t n_channels, bool transposes, uint16_t *to,
                        int64_t tile)
{
    for (int64_t c = 0; c < n_channels; c += DEPTH, to += 2 * tile) {
        int64_t n = n_channels - c;
        if (n < DEPTH)
            pack_channels(pixel, c, n, transposes, to, tile);
        else if (transposes)
            pack_channels(pixel, c, DEPTH, true, to, tile);
        else
            pack_channels(pixel, c, DEPTH, false, to, tile);
    }
}

INLINE void sum_row(const stk_amx_sum *g, const uint16_t *a, const uint16_t *b)
{
    const uint16_t *a1 = a + g->a_tile, *b1 = b + g->b_tile;
    for (int64_t i = 0; i < g->n_tiles * TILE; i += TILE) {
        TILE_LOAD(4, a + i, ROW_BYTES);
        TILE_LOAD(6, b + i, ROW_BYTES);
        TILE_LOAD(7, b1 + i, ROW_BYTES);
        TILE_MULTIPLY(0, 4, 6);
        TILE_MULTIPLY(1, 4, 7);
        TILE_LOAD(5, a1 + i, ROW_BYTES);
        TILE_MULTIPLY(2, 5, 6);
        TILE_MULTIPLY(3, 5, 7);
    }
}

static void write_some_sums(const stk_amx_sum *g)
{
    sums_block block;
    store_sums(block.sums[0], SIDE, ROWS);
    for (int64_t i = 0; i < g->n_o; i++)
        memcpy(g->to + i * g->to_row, block.sums[i], (size_t)g->n_c * sizeof(float));
}

static void sum_pixels(const stk_amx_sum *g)
{
    enum { SUMS = ROWS * ROWS };
    begin_sums(g->from);
    for (int64_t group = 0; group < g->n_groups; group++)
        for (int64_t row = 0; row < g->n_rows; row++)
            sum_row(g, g->a + group * g->a_group + row * g->a_row, g->b + group * g->b_group + row * g->b_row);
    if (!g->to_row)
        store_sums(g->to, ROWS, SUMS);
    else if (g->n_o == SIDE && g->n_c == SIDE)
        store_sums(g->to, g->to_row, ROWS);
    else
        write_some_sums(g);
}

static const stk_amx_weight_fns weight_fns = {tiles_begin, tiles_end, pack_pixels, sum_pixels};

#endif

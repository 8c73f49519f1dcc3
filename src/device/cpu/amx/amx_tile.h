/* Eight tiles, of which four are sums: the processor's, or a model of them. Numbers of tiles are constants.
 *
 * The model follows the instruction's description: the products of even and those of odd elements of a row are each
 * added up by fused multiply-adds from 0 on, then both sums are added, then the tile's. Denormal numbers count as 0,
 * and so do denormal results.
 */
#ifndef STK_DEVICE_CPU_AMX_AMX_TILE_H
#define STK_DEVICE_CPU_AMX_AMX_TILE_H

#include <stdint.h>
#include <string.h>

#include "device/cpu/amx/amx.h"

enum { STK_AMX_TILES = 8, STK_AMX_ROW_BYTES = 64 };

#ifdef __AMX_BF16__

#include <immintrin.h>

typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

/* Tiles are 0 behind it. */
static inline void tiles_begin(void)
{
    enum { BYTES = STK_AMX_ROW_BYTES, ROWS = STK_AMX_ROWS };
    /* Constant: compilers take the intrinsic for one that reads 8 bytes of it. */
    static const tile_shapes shapes = {1,
                                       0,
                                       {0},
                                       {BYTES, BYTES, BYTES, BYTES, BYTES, BYTES, BYTES, BYTES},
                                       {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS}};
    _tile_loadconfig(&shapes);
    /* What was stored before is what tiles load. */
    __asm__ volatile("" ::: "memory");
}

/* A thread that keeps tiles pays for them at each switch to another one. */
static inline void tiles_end(void)
{
    _tile_release();
}

/* An instruction on tiles, which compilers have as a statement, and some that do nothing: where another hardware thread
 * has half of the core, tiles one right behind the other take a fifth more time (docs/kernels.md). */
#define TILE_APART(instruction)                                                                                        \
    do {                                                                                                               \
        instruction;                                                                                                   \
        __asm__ volatile(".rept 8\n\tnop\n\t.endr");                                                                   \
    } while (0)

#define TILE_ZERO(tile)              _tile_zero(tile)
#define TILE_LOAD(tile, from, bytes) TILE_APART(_tile_loadd(tile, from, bytes))
/* What is not read again soon: it does not take the first-level cache from what is. */
#define TILE_LOAD_ONCE(tile, from, bytes) TILE_APART(_tile_stream_loadd(tile, from, bytes))
#define TILE_STORE(tile, to, bytes)       _tile_stored(tile, to, bytes)
#define TILE_MULTIPLY(sums, a, b)         TILE_APART(_tile_dpbf16ps(sums, a, b))

#else

typedef struct model_tile {
    uint32_t row[STK_AMX_ROWS][STK_AMX_ROWS];
} model_tile;

static _Thread_local model_tile model_tiles[STK_AMX_TILES];

static inline void tiles_begin(void)
{
    memset(model_tiles, 0, sizeof(model_tiles));
}

static inline void tiles_end(void)
{
}

static inline void model_load(int tile, const void *from, int64_t bytes)
{
    for (int i = 0; i < STK_AMX_ROWS; i++)
        memcpy(model_tiles[tile].row[i], (const char *)from + i * bytes, STK_AMX_ROW_BYTES);
}

static inline void model_store(int tile, void *to, int64_t bytes)
{
    for (int i = 0; i < STK_AMX_ROWS; i++)
        memcpy((char *)to + i * bytes, model_tiles[tile].row[i], STK_AMX_ROW_BYTES);
}

/* sums += a b (amx_tile_model.c). */
void stk_amx_model_multiply(model_tile *sums, const model_tile *a, const model_tile *b);

#define TILE_ZERO(tile)                   memset(&model_tiles[tile], 0, sizeof(model_tile))
#define TILE_LOAD(tile, from, bytes)      model_load(tile, from, bytes)
#define TILE_LOAD_ONCE(tile, from, bytes) model_load(tile, from, bytes)
#define TILE_STORE(tile, to, bytes)       model_store(tile, to, bytes)
#define TILE_MULTIPLY(sums, a, b)         stk_amx_model_multiply(&model_tiles[sums], &model_tiles[a], &model_tiles[b])

#endif

#endif

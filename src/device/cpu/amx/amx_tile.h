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

#define TILE_ZERO(tile)              _tile_zero(tile)
#define TILE_LOAD(tile, from, bytes) _tile_loadd(tile, from, bytes)
/* What is not read again soon: it does not take the first-level cache from what is. */
#define TILE_LOAD_ONCE(tile, from, bytes) _tile_stream_loadd(tile, from, bytes)
#define TILE_STORE(tile, to, bytes)       _tile_stored(tile, to, bytes)
#define TILE_MULTIPLY(sums, a, b)         _tile_dpbf16ps(sums, a, b)

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

/* A denormal number becomes a 0 of its sign. */
static inline float model_flush(uint32_t bits)
{
    float x;
    uint32_t sign = bits & 0x80000000;
    bits = bits & 0x7f800000 ? bits : sign;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint32_t model_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Even and odd elements of a tile's rows. */
static inline void model_split(int tile, float even[STK_AMX_ROWS][STK_AMX_ROWS], float odd[STK_AMX_ROWS][STK_AMX_ROWS])
{
    for (int i = 0; i < STK_AMX_ROWS; i++)
        for (int j = 0; j < STK_AMX_ROWS; j++) {
            even[i][j] = model_flush(model_tiles[tile].row[i][j] << 16);
            odd[i][j] = model_flush(model_tiles[tile].row[i][j] & 0xffff0000);
        }
}

/* sum + x y, rounded once: in double the product of two bf16 is exact, and the sum rounds to the same f32. */
static inline float model_add(float sum, float x, float y)
{
    return model_flush(model_bits((float)((double)x * (double)y + (double)sum)));
}

static inline void model_multiply(int sums, int a, int b)
{
    float x[2][STK_AMX_ROWS][STK_AMX_ROWS], y[2][STK_AMX_ROWS][STK_AMX_ROWS];
    model_split(a, x[0], x[1]);
    model_split(b, y[0], y[1]);
    for (int i = 0; i < STK_AMX_ROWS; i++) {
        float even[STK_AMX_ROWS] = {0}, odd[STK_AMX_ROWS] = {0};
        for (int l = 0; l < STK_AMX_ROWS; l++)
            for (int j = 0; j < STK_AMX_ROWS; j++) {
                even[j] = model_add(even[j], x[0][i][l], y[0][l][j]);
                odd[j] = model_add(odd[j], x[1][i][l], y[1][l][j]);
            }
        for (int j = 0; j < STK_AMX_ROWS; j++) {
            float sum = model_flush(model_bits(even[j] + odd[j]));
            sum = model_flush(model_bits(model_flush(model_tiles[sums].row[i][j]) + sum));
            model_tiles[sums].row[i][j] = model_bits(sum);
        }
    }
}

#define TILE_ZERO(tile)                   memset(&model_tiles[tile], 0, sizeof(model_tile))
#define TILE_LOAD(tile, from, bytes)      model_load(tile, from, bytes)
#define TILE_LOAD_ONCE(tile, from, bytes) model_load(tile, from, bytes)
#define TILE_STORE(tile, to, bytes)       model_store(tile, to, bytes)
#define TILE_MULTIPLY(sums, a, b)         model_multiply(sums, a, b)

#endif

#endif

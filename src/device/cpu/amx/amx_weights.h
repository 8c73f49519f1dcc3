/* The loops of conv/conv2d_weight_amx.c: sums over pixels of products of two tensors' channels, by tiles (amx.h).
 *
 * A tile's 32 numbers of k are 16 twos of pixels, those of the same place in two images side by side. Of the gradient,
 * whose channels are the rows of sums, a tile is [16 channels][16][2]; of the images it is [16][16 channels][2], 64
 * bytes for each two of pixels, so that a tap reads from other such rows on.
 */
#ifndef STK_DEVICE_CPU_AMX_AMX_WEIGHTS_H
#define STK_DEVICE_CPU_AMX_AMX_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Channels of a block of sums, on both sides; pixels, elements and bytes of a tile. */
enum { STK_AMX_CHANNELS = 32, STK_AMX_PIXELS = 32, STK_AMX_TILE = 512, STK_AMX_TILE_BYTES = 1024 };

/* One block of sums: the tiles of some rows of some groups of images. */
typedef struct stk_amx_sum {
    const uint16_t *a, *b;  /* elements: of the gradient, of the images */
    int64_t a_tile, b_tile; /* from 16 channels to the next */
    int64_t n_groups, n_rows, n_tiles;
    int64_t a_group, a_row, b_group, b_row;
    const float *from; /* [2][2][16][16] of gradient's and images' channels, 64-byte aligned; NULL: sums begin at 0 */
    float *to;         /* the same; or, where to_row is not 0, [n_o][n_c] */
    int64_t to_row, n_o, n_c;
} stk_amx_sum;

typedef struct stk_amx_weight_fns {
    /* Around calls of sum. */
    void (*begin)(void);
    void (*end)(void);
    /* Channels of 32 pixels, pixels 2 i and 2 i + 1 side by side: tiles of 16 channels, tile elements apart; up to a
     * multiple of STK_AMX_CHANNELS are written, with zeros for those that are not. */
    void (*pack)(const uint16_t *const pixel[STK_AMX_PIXELS], int64_t n_channels, bool transposes, uint16_t *to,
                 int64_t tile);
    void (*sum)(const stk_amx_sum *sum);
} stk_amx_weight_fns;

#endif

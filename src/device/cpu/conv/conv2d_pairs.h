/* The loops of conv2d_weight_pairs.c: 16-bit numbers of two images side by side, as the processor multiplies them.
 *
 * A pair is a 32-bit number: an element of one image in its low half, the same element of the next image in its high
 * half. One instruction multiplies 16 pairs by 16 others and adds both products of each to an f32 sum.
 */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_PAIRS_H
#define STK_DEVICE_CPU_CONV_CONV2D_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STK_PAIRS_CHUNK = 32, /* input channels of a tile of sums */
    STK_PAIRS_TILE = 12,  /* its output channels: 12, 8 or 4 */
};

/* What one tile of sums is made of. */
typedef struct stk_pairs_tile {
    const uint32_t *grad; /* [images, rows, cols, output channels of the tile], without gaps */
    const uint32_t *x;    /* [STK_PAIRS_CHUNK] for each pixel; steps between them in pairs: */
    int64_t x_image, x_row, x_col;
    int64_t n_images, n_rows, n_cols;
    float *sums; /* [output channels of the tile][STK_PAIRS_CHUNK], sums_step from row to row */
    int64_t sums_step;
    bool adds; /* to what is there */
} stk_pairs_tile;

typedef struct stk_pairs_fns {
    /* n_channels of n_pixels, step elements apart, of two images, as pairs: chunk i of a pixel goes to
     * to[i * chunk_step + pixel * STK_PAIRS_CHUNK]. Without a second image its half is 0. */
    void (*join)(const uint16_t *first, const uint16_t *second, int64_t n_pixels, int64_t step, int64_t n_channels,
                 uint32_t *to, int64_t chunk_step);
    /* The same for gradients, which go to pixels first_pixel and on: tile i begins at
     * to[i * STK_PAIRS_TILE * tile_step], and is as wide as stk_pairs_width says. */
    void (*join_tiles)(const uint16_t *first, const uint16_t *second, int64_t n_pixels, int64_t step,
                       int64_t n_channels, uint32_t *to, int64_t tile_step, int64_t first_pixel);
    void (*multiply)(const stk_pairs_tile *tile, int width);
} stk_pairs_fns;

/* Output channels of the tile that begins at the given one. */
static inline int stk_pairs_width(int64_t channel, int64_t n_channels)
{
    int64_t left = n_channels - channel;
    return left < STK_PAIRS_TILE ? (int)left : STK_PAIRS_TILE;
}

/* NULL where the build has none. To be called only where stk_isa_has_bf16. */
const stk_pairs_fns *stk_pairs_of_build(void);

#endif

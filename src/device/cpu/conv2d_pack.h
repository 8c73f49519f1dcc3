/* Weights [O,KH,KW,C] of bf16 as oneDNN's convolutions want them, in blocks of pairs. oneDNN has reorders of its own,
 * which run once for each thread's images and at a tenth of the memory's speed; these are shared between threads.
 */
#ifndef STK_DEVICE_CPU_CONV2D_PACK_H
#define STK_DEVICE_CPU_CONV2D_PACK_H

#include <stdbool.h>

#include "device/cpu/bf16_tile.h"

enum { STK_PACK_LANES = 16, STK_PACK_AT_ONCE = 256 /* input channels of a piece of work */ };

typedef enum stk_pack_kind {
    STK_PACK_NONE,      /* oneDNN reorders */
    STK_PACK_IN_PAIRS,  /* a block is [o in block][2 of c]; the next two of c are behind it */
    STK_PACK_OUT_PAIRS, /* a block is [8 twos of o][16 of c][2 of o] */
} stk_pack_kind;

typedef struct stk_conv_packing {
    stk_pack_kind kind;
    int64_t o, kernel_h, kernel_w, c;
    int64_t padded_o, padded_c;             /* what lies beyond o and c is 0 */
    int64_t block;                          /* output channels of a block, a multiple of STK_PACK_LANES */
    int64_t o_step, c_step, y_step, x_step; /* elements from a block of o, a block of c, a tap to the next */
    size_t bytes;
    /* The weights lie as [C,KH,KW,O], and their taps come from the last to the first: a gradient of data that is a
     * convolution of its own. STK_PACK_IN_PAIRS only. */
    bool is_turned;
} stk_conv_packing;

/* A share of all blocks, for parallel.h. Of weights as they are read or, where wide is not NULL, of f32 that are
 * rounded as a cast does it. to has packing->bytes and is 64-byte aligned. */
void stk_conv_pack_share(const stk_bf16_tile_fns *tiles, const stk_conv_packing *packing, const uint16_t *weight,
                         const float *wide, uint16_t *to, int i_part, int n_parts);

#endif

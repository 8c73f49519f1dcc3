/* Weights [O,KH,KW,C] of bf16 as oneDNN's convolutions want them, in blocks of pairs. oneDNN has reorders of its own,
 * which run once for each thread's images and at a tenth of the memory's speed; these are shared between threads.
 */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_PACK_H
#define STK_DEVICE_CPU_CONV_CONV2D_PACK_H

#include "device/cpu/matmul/bf16_tile.h"
#include "device/cpu/onednn/onednn.h"

/* A share of all blocks, for parallel.h. Of weights as they are read or, where wide is not NULL, of f32 that are
 * rounded as a cast does it. to has packing->bytes and is 64-byte aligned. */
void stk_conv_pack_share(const stk_tile_fns *tiles, const stk_conv_packing *packing, const uint16_t *weight,
                         const float *wide, uint16_t *to, int i_part, int n_parts);

#endif

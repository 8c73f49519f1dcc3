/* Random numbers for the first content of variables, in chunks of a fixed size, for each instruction set.
 *
 * Elements 4b to 4b + 3 are made of the four words of Philox's block (key, 0, b):
 *   uniform   each of its word's upper 24 bits: [-1, 1)
 *   normal    Box and Muller 1958: words 0 and 1 give elements 0 and 1, words 2 and 3 the other two. The first word's
 *             upper 24 bits are a size below 5.8, the second word is an angle
 *
 * All in f32 and without fused multiply-adds, so that every instruction set gives the same bits.
 */
#ifndef STK_ENGINE_DRAW_H
#define STK_ENGINE_DRAW_H

#include <stdint.h>

enum { STK_DRAW_CHUNK = 1024 };

/* Elements i_chunk * STK_DRAW_CHUNK and on, each times factor. */
typedef void (*stk_draw_fn)(uint64_t key, int64_t i_chunk, float factor, float *out);

typedef struct stk_draw_kernels {
    stk_draw_fn uniform, normal;
} stk_draw_kernels;

extern const stk_draw_kernels stk_draw_kernels_plain;
#ifdef __x86_64__
extern const stk_draw_kernels stk_draw_kernels_avx2;
#endif
/* The best for this processor, or less where the environment's STOKER_ISA says so. */
const stk_draw_kernels *stk_draw_kernels_choose(void);

#endif

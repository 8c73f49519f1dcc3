/* For conv2d_*_isa.c: the register tile's size and 4 x 4 transposes. */
#ifndef STK_DEVICE_CPU_CONV_CONV2D_VEC_H
#define STK_DEVICE_CPU_CONV_CONV2D_VEC_H

#include <stdint.h>

#include "device/cpu/simd/register_tile.h"

enum { LANES = VEC_BYTES / 4, COLS = 2 * LANES };

typedef float vec __attribute__((vector_size(VEC_BYTES), aligned(4), may_alias));
typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias));

/* ReLU; a NaN stays one. */
static inline vec relu_of(vec x)
{
    typedef int32_t mask __attribute__((vector_size(VEC_BYTES)));
    return (vec)((mask)x & ~(mask)(x <= (vec){0}));
}

/* Eight heights at most; a tile of each is compiled. */
#define STK_CONV_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)

static inline int64_t panels_of(int64_t n)
{
    return (n + COLS - 1) / COLS;
}

/* How many tiles come next when m > 0 rows are left, and their height: as few tiles as can be, of about equal height.
 */
static inline int64_t next_tiles(int64_t m, int64_t *height)
{
    int64_t n = (m + ROWS - 1) / ROWS;
    *height = (m + n - 1) / n;
    return m - n * (*height - 1);
}

/* to[i][j] = from[j][i]; steps from one row to the next. */
static inline void transpose4(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    vec4 r0 = *(const vec4 *)from, r1 = *(const vec4 *)(from + from_row);
    vec4 r2 = *(const vec4 *)(from + 2 * from_row), r3 = *(const vec4 *)(from + 3 * from_row);
    vec4 low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    vec4 top01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7), top23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    *(vec4 *)to = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    *(vec4 *)(to + to_row) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    *(vec4 *)(to + 2 * to_row) = __builtin_shufflevector(top01, top23, 0, 1, 4, 5);
    *(vec4 *)(to + 3 * to_row) = __builtin_shufflevector(top01, top23, 2, 3, 6, 7);
}

#endif

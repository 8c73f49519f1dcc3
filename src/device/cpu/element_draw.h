/* The random bits of dropout, many at a time, for element_isa.c. Which bits an element gets is in graph/dropout.h. */
#ifndef STK_DEVICE_CPU_ELEMENT_DRAW_H
#define STK_DEVICE_CPU_ELEMENT_DRAW_H

#include <string.h>

#include "base/philox_many.h"
#include "device/cpu/element.h"
#include "graph/dropout.h"

/* Elements made at a time, and as many groups of four words at most: rows may be one element long. */
enum { PIECE = STK_DRAW_PIECE };

/* The 16 bits of each of n <= PIECE elements. */
static void draw_parts(const stk_dropout_args *args, int64_t at, int n, uint16_t *out)
{
    enum { MOST = PIECE + WIDE_LANES };
    uint64_t hi[MOST], lo[MOST], pairs[2 * MOST];
    uint16_t parts[STK_DROPOUT_BLOCK * PIECE];
    int64_t row = at / args->n_columns, e = at % args->n_columns;
    int n_groups = 0;
    for (int i = 0, n_here; i < n; i += n_here, row++, e = 0) {
        n_here = args->n_columns - e < n - i ? (int)(args->n_columns - e) : n - i;
        int n_more = (int)((e + n_here - 1) / STK_DROPOUT_BLOCK - e / STK_DROPOUT_BLOCK) + 1;
        for (int g = 0; g < n_more; g++) {
            hi[n_groups + g] = (uint64_t)args->sample + (uint64_t)row;
            lo[n_groups + g] = (uint64_t)(e / STK_DROPOUT_BLOCK + g);
        }
        n_groups += n_more;
    }
    for (int i = 0; i < WIDE_LANES; i++)
        hi[n_groups + i] = lo[n_groups + i] = 0;
    philox_many(args->key, n_groups, hi, lo, pairs);
    split_pairs(2 * n_groups, pairs, parts);
    const uint16_t *from = parts;
    e = at % args->n_columns;
    for (int i = 0, n_here; i < n; i += n_here, e = 0) {
        n_here = args->n_columns - e < n - i ? (int)(args->n_columns - e) : n - i;
        memcpy(out + i, from + e % STK_DROPOUT_BLOCK, (size_t)n_here * sizeof(*out));
        from += STK_DROPOUT_BLOCK * ((e + n_here - 1) / STK_DROPOUT_BLOCK - e / STK_DROPOUT_BLOCK + 1);
    }
}

/* For generated code. */
static void draw(const stk_dropout_args *args, int64_t at, int n, int32_t *out)
{
    uint16_t parts[PIECE];
    draw_parts(args, at, n, parts);
    _Pragma("omp simd") for (int i = 0; i < n; i++) out[i] = parts[i];
}

#endif

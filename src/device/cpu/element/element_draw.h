/* The random bits of dropout, many at a time, for element_isa.c. Which bits an element gets is in graph/dropout.h. */
#ifndef STK_DEVICE_CPU_ELEMENT_ELEMENT_DRAW_H
#define STK_DEVICE_CPU_ELEMENT_ELEMENT_DRAW_H

#include <string.h>

#include "base/philox_many.h"
#include "device/cpu/element/element.h"
#include "graph/dropout.h"

/* Elements made at a time, and as many groups of four words at most: rows may be one element long. */
enum { PIECE = 256 };

/* Bits of elements in the order in which they come, and room for whole vectors of counters. */
typedef union drawn_bits {
    uint64_t pair[2 * (PIECE / STK_DROPOUT_BLOCK + WIDE_LANES)];
    uint16_t part[STK_DROPOUT_BLOCK * (PIECE / STK_DROPOUT_BLOCK + WIDE_LANES)];
} drawn_bits;

/* Of elements that share no row, or begin within a block of four words: counters from anywhere. */
static void draw_scattered(const stk_dropout_args *args, int64_t at, int n, uint16_t *out)
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

/* The 16 bits of each of n <= PIECE elements, in out->part. */
static void draw_parts(const stk_dropout_args *args, int64_t at, int n, drawn_bits *out)
{
    int64_t row = at / args->n_columns, e = at % args->n_columns;
    int n_groups = (n + STK_DROPOUT_BLOCK - 1) / STK_DROPOUT_BLOCK;
    if (e % STK_DROPOUT_BLOCK || e + n > args->n_columns) {
        draw_scattered(args, at, n, out->part);
        return;
    }
    philox_run(args->key, n_groups, (uint64_t)args->sample + (uint64_t)row, (uint64_t)(e / STK_DROPOUT_BLOCK),
               out->pair);
    split_pairs(2 * n_groups, out->pair, out->part);
}

#endif

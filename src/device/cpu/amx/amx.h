/* Products of blocks of bf16 by tiles (AMX, Intel 64 Software Developer's Manual, volume 1, chapter 18): one
 * instruction multiplies 16 rows of 32 numbers by 32 rows of 16 and adds them to 16 x 16 sums of f32.
 *
 *   step   32 of k
 *   a      in rows of 32 of k, so that a tile is 1 KiB in one piece: [k / 32][rows][32], where rows are read at several
 *          places; or [rows / 32][k / 32][32][32], in the order of use
 *   panel  32 columns of b: [k / 32][2 tiles][16 pairs of k][16 columns][2]
 *
 * What lies beyond k is 0 in both. Everything is built twice: for the processor's tiles, and with a model of them in
 * plain C that gives the same bits (amx_tile_model.c), so that packing and edges are tested on any processor.
 */
#ifndef STK_DEVICE_CPU_AMX_AMX_H
#define STK_DEVICE_CPU_AMX_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"
#include "device/cpu/amx/amx_weights.h"

/* Of a tile: rows, and numbers in a row; rows and columns of sums at a time; numbers of a step's part of a panel. */
enum { STK_AMX_ROWS = 16, STK_AMX_DEPTH = 32, STK_AMX_SIDE = 32, STK_AMX_STEP = STK_AMX_DEPTH * STK_AMX_SIDE };
/* Steps of a panel that stay in the first-level cache; rows whose sums are kept while the next steps come. */
enum { STK_AMX_NEAR_STEPS = 18, STK_AMX_PARTIAL_ROWS = 1024 };

/* c [m,n] = a b for panels of b, or c += a b, or either plus a bias, ReLU last. */
typedef struct stk_amx_block {
    int64_t m, n; /* n: columns that exist, of one panel or of several, which all rows meet one after the other */
    int64_t n_steps;
    /* Rows are read up to the next multiple of STK_AMX_ROWS. Step i reads 64-byte rows from a + steps[i] on, or, where
     * steps is NULL, from a + i * a_step on, in elements; a_block is from STK_AMX_SIDE rows to the next. 64-byte
     * aligned.
     */
    const uint16_t *a;
    const int64_t *steps;
    int64_t a_step, a_block;
    int64_t a_row;        /* elements from a row of a to the next, where not 0: any, as far as rows are aligned */
    bool fetches_a;       /* with a_row: rows come into the second-level cache while those before them are multiplied */
    uint16_t *packs_a;    /* with a_row, one panel: rows are packed here, as by pack_a, to be read by later calls */
    const int64_t *tiles; /* not NULL: where each STK_AMX_ROWS rows are, from a on, instead of by a_block */
    const uint16_t *b;    /* a panel: n_steps * STK_AMX_STEP elements, 64-byte aligned */
    int64_t b_panel;      /* from one panel to the next; 0 where n is of one */
    /* false: all rows meet one panel after the other. true: all panels meet 32 rows after the other, in place of which
     * the next ones are fetched: where panels fit the second-level cache and rows come from memory. */
    bool by_rows;
    /* [m up to a multiple of 32, or STK_AMX_PARTIAL_ROWS][32], 64-byte aligned, for more steps than are near; NULL: all
     * at once. */
    float *partial;
    /* Where row i of c is: at c_row times this; negative: nowhere. NULL: i. */
    const int32_t *rows;
    const float *add;  /* NULL: nothing; may be c; has c's rows, add_row apart */
    const float *bias; /* [n]; NULL: none */
    bool has_relu;
    float *c;
    uint16_t *rounded_c; /* not NULL: c goes here instead, as bf16 */
    int64_t c_row, add_row;
    bool is_far;       /* c is too large for the caches */
    const void *ahead; /* [ahead_bytes], brought into the second-level cache on the way; NULL: nothing */
    int64_t ahead_bytes;
} stk_amx_block;

/* x, whose element (i, j) is number i * row + j * col, of which one is 1: bf16, or f32 that are rounded as a cast does
 * it. */
typedef struct stk_amx_source {
    const void *x;
    int64_t row, col;
    bool is_wide;
} stk_amx_source;

typedef struct stk_amx_fns {
    /* Panels of x [k,n], whose row 0 is row 0 of a step; rows up to a whole step are written. From one panel to the
     * next it is depth * STK_AMX_SIDE elements. to is 64-byte aligned. */
    void (*pack_b)(const stk_amx_source *x, int64_t k, int64_t n, int64_t depth, uint16_t *to);
    /* Blocks of STK_AMX_SIDE rows of x [m,k]; m is rounded up to whole tiles. to is 64-byte aligned. */
    void (*pack_a)(const stk_amx_source *x, int64_t m, int64_t k, uint16_t *to);
    /* n rows, step elements apart, of n_values each, whose 32s go to rows of chunks, to_step apart. What is missing of
     * the last 32 is 0. */
    void (*copy_places)(const uint16_t *from, int64_t n, int64_t step, int64_t n_values, uint16_t *to, int64_t to_step,
                        int64_t chunk);
    void (*multiply)(const stk_amx_block *block);
    const stk_amx_weight_fns *weights;
} stk_amx_fns;

/* NULL where neither the processor has tiles nor STOKER_AMX asks for the model ("model"; "off": never any). */
const stk_amx_fns *stk_amx_of(stk_isa isa);
/* "own amx", "own amx model" */
const char *stk_amx_impl(const stk_amx_fns *fns);

extern const stk_amx_fns stk_amx_silicon; /* where the build has it: STK_AMX */
extern const stk_amx_fns stk_amx_model;

#endif

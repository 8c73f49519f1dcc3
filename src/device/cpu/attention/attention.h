/* Attention of one head at a time, forward and backward, block by block. */
#ifndef STK_DEVICE_CPU_ATTENTION_ATTENTION_H
#define STK_DEVICE_CPU_ATTENTION_ATTENTION_H

#include "device/cpu/matmul/bf16_tile.h"
#include "device/cpu/matmul/matmul.h"
#include "graph/attention.h"

/* Products of small blocks of bf16 that lie in the cache, c [m,n] = a b, or c += a b. */
typedef struct stk_attention_products {
    /* a is read in rows up to multiples of these: rows and their elements, which are 0 beyond k. Rows of c are written
     * up to the same multiple, and columns up to one of 16. At most STK_ATTENTION_MOST_ROWS and 32. */
    int rows, depth;
    /* Around everything that a thread multiplies. */
    void (*begin)(void);
    void (*end)(void);
    /* b: x [k,n], whose element (l, j) is at x[l * row + j * col], of which one is 1. */
    void (*pack_b)(const uint16_t *x, int64_t row, int64_t col, int64_t k, int64_t n, uint16_t *to);
    /* a of n rows from x [k,n], whose element (l, j) is at x[l * row + j]: a block's a_row is 0 then. */
    void (*pack_turned)(const uint16_t *x, int64_t row, int64_t k, int64_t n, uint16_t *to);
    /* m, n, k, a, a_row, b, depth (rows of x in pack_b), add (NULL or c), c, c_row, skip and diagonal count. */
    void (*multiply)(const stk_tile_block *block);
} stk_attention_products;

enum { STK_ATTENTION_MOST_ROWS = 16 };

/* One call. Layouts are the op's; pointers that a pass does not need are NULL. */
typedef struct stk_attention_call {
    stk_attention_sizes size;
    double scale, rate;
    bool causal;
    uint64_t key; /* of dropout */
    int64_t sample;
    const stk_gemm_fns *gemm;
    const stk_attention_products *products; /* of bf16 as they lie */
    bool has_one_head; /* q, k, v, y and their gradients are the rows of the head that is asked for alone: [T,D], [S,D]
                        */
    const void *q, *k, *v;
    const uint8_t *mask; /* NULL: none */
    void *y, *lse;
    const void *dy;
    void *dq, *dk, *dv;
} stk_attention_call;

typedef struct stk_attention_fns {
    /* Queries [begin, end) of head h of sample n. */
    void (*forward)(const stk_attention_call *call, int64_t n, int64_t h, int64_t begin, int64_t end, void *scratch);
    void (*backward)(const stk_attention_call *call, int64_t n, int64_t h, void *scratch);
    /* What one of them needs. */
    size_t (*forward_bytes)(const stk_attention_call *call);
    size_t (*backward_bytes)(const stk_attention_call *call);
} stk_attention_fns;

/* Queries that pass by at a time, forward. */
enum { STK_ATTENTION_QUERIES = 48 };

typedef struct stk_attention_table {
    stk_attention_fns f32, f64;
} stk_attention_table;

STK_ISA_TABLE(stk_attention_table, stk_attention)

#ifdef STK_ISA_X86
/* Of bf16 as they lie, where stk_isa_has_bf16. */
extern const stk_attention_fns stk_attention_avx512bf16;
/* By the instruction for pairs of bf16. */
extern const stk_attention_products stk_attention_by_pairs;
#endif
/* By tiles, where the build has them (STK_AMX), and by the model of them. */
extern const stk_attention_products stk_attention_by_tiles, stk_attention_by_model;

#endif

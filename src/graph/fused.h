/* A group of element-wise ops that runs as one kernel: a straight-line program over registers, applied to every point
 * of one iteration space. Besides, it may reduce one register over the space's first or last axes, or over all of them:
 * that is the node's last output. Made by pass_fuse; a device may interpret it in blocks or compile it.
 *
 *   registers 0 .. n_in-1            the inputs at this point
 *   registers n_in .. n_in+n_instr-1 the instructions' results, in order
 *
 * An input is read with element strides over the iteration space: 0 on axes along which it is broadcast.
 */
#ifndef STK_GRAPH_FUSED_H
#define STK_GRAPH_FUSED_H

#include "base/arena.h"
#include "graph/op.h"

typedef struct stk_fused_instr {
    stk_op op;           /* unary, binary, compare, select, cast, constant or dropout */
    int32_t kind;        /* of unary, binary, compare */
    stk_dtype dtype;     /* of the result */
    stk_dtype src_dtype; /* of operand 0 (the compared or cast type) */
    int32_t operand[3];  /* registers; unused: -1. dropout: x, seed, sample (inputs of rank 0) */
    double value;        /* constant: its value; dropout: the rate */
    int64_t stream;      /* dropout */
} stk_fused_instr;

typedef struct stk_fused_input {
    stk_dtype dtype;
    int64_t stride[STK_MAX_RANK]; /* in elements, by axis of the iteration space */
} stk_fused_input;

typedef struct stk_fused_reduce {
    uint32_t axes; /* of the iteration space, bit i: axis i; 0: the group reduces nothing */
    int32_t src;   /* register, of a float */
    int kind;      /* sum, mean, maximum or minimum */
    bool wide;     /* as reduce has it: f32 out of 16 bits */
} stk_fused_reduce;

struct stk_fused {
    stk_shape shape; /* iteration space; every output has it, but for what is reduced */
    int32_t n_in, n_instr, n_out;
    const stk_fused_input *input;
    const stk_fused_instr *instr;
    const int32_t *out;      /* register of each output */
    stk_fused_reduce reduce; /* output n_out */
};

/* A space that is reduced over its first or its last axes, as a matrix [n_rows,n_columns]. */
typedef struct stk_fused_matrix {
    int64_t n_rows, n_columns;
    bool by_columns; /* what is left has one number for each column, else one for each row */
} stk_fused_matrix;

/* False where the axes are neither. Axes of length 1 do not matter. */
bool stk_fused_find_matrix(stk_shape space, uint32_t axes, stk_fused_matrix *out);

/* A copy with all its arrays in arena; NULL when out of memory. */
stk_fused *stk_fused_copy(stk_arena *arena, const stk_fused *program);

#endif

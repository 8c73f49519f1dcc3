/* A group of element-wise ops that runs as one kernel: a straight-line program over registers, applied to every point
 * of one iteration space. Made by pass_fuse; a device may interpret it in blocks or compile it.
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

struct stk_fused {
    stk_shape shape; /* iteration space; every output has it */
    int32_t n_in, n_instr, n_out;
    const stk_fused_input *input;
    const stk_fused_instr *instr;
    const int32_t *out; /* register of each output */
};

/* A copy with all its arrays in arena; NULL when out of memory. */
stk_fused *stk_fused_copy(stk_arena *arena, const stk_fused *program);

#endif

/* Fused groups of the bench recipes as a code generator would write them: one loop over the elements, everything
 * between in registers, broadcasts and constants known. Written by hand, for bench_codegen.c only.
 */
#ifndef BENCH_CODEGEN_GROUPS_H
#define BENCH_CODEGEN_GROUPS_H

#include <stdint.h>

/* Rows [begin, end) of n_columns elements each. in, out: as the group's. */
typedef struct codegen_args {
    void *const *in;
    void *const *out;
    int64_t n_columns, begin, end;
} codegen_args;

/* x + bias and its exact GELU. */
void codegen_gelu(const codegen_args *args);
void codegen_gelu_bf16(const codegen_args *args);
/* GELU of x again, and its gradient times dy. */
void codegen_gelu_grad(const codegen_args *args);
/* dropout(x + bias) + residual; in[3], in[4]: seed and number of the first sample, i64. */
void codegen_dropout(const codegen_args *args);
/* relu(x + residual), and the same after batch norm's x * scale + shift. */
void codegen_add_relu(const codegen_args *args);
void codegen_norm_relu(const codegen_args *args);

/* Of codegen_dropout: rows that are one sample, the stream and the rate. */
enum { CODEGEN_SAMPLE_ROWS = 128, CODEGEN_STREAM = 7 };
#define CODEGEN_RATE 0.1

#endif

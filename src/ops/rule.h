/* What the rules share: checks, texts, and small pieces of graph. Each op's own rule is in its own file.
 * Threads: as for the graph that is built.
 */
#ifndef STK_OPS_RULE_H
#define STK_OPS_RULE_H

#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/op.h"

/* --- building --- */

/* False for a NULL graph and for what an earlier error left behind. */
static inline bool stk_rule_usable(stk_value x)
{
    return x.graph && x.id >= 0;
}

static inline stk_value stk_rule_none(stk_graph *graph)
{
    return (stk_value){graph, -1};
}

/* Keeps the error in the graph and returns no value. */
stk_value stk_rule_fail(stk_graph *graph, stk_status status);
/* stk_graph_add, or quietly no value where an input is none. attrs NULL: none. */
stk_value stk_rule_add(stk_op op, const stk_attrs *attrs, const stk_value *in, int n_in);
/* A scalar constant. */
stk_value stk_rule_scalar(stk_graph *graph, stk_dtype dtype, double value);
/* Broadcasts the n values to their common shape; x[] is replaced. False after an error. */
bool stk_rule_broadcast_all(stk_value *x, int n);
/* stk_reduce_sum, f32 for x of 16 bits. */
stk_value stk_reduce_sum_wide(stk_value x, uint32_t axes);
/* STK_OK where dx is a value; else the error that the graph kept while a gradient was built. */
stk_status stk_rule_built(stk_value dx);

/* --- checking --- */

/* The dtype of statistics, scales and losses over values of dtype x: f64 for f64, else f32. */
static inline stk_dtype stk_rule_stat_dtype(stk_dtype x)
{
    return x == STK_F64 ? STK_F64 : STK_F32;
}

/* "x f32[2,3] ...": fails unless desc is a float. role names it in the text. */
stk_status stk_rule_need_float(const char *role, stk_tensor_desc desc);
/* Fails unless desc is dtype and shape. */
stk_status stk_rule_need(const char *role, stk_tensor_desc desc, stk_dtype dtype, stk_shape shape);
stk_status stk_rule_need_rank(const char *role, stk_tensor_desc desc, int rank);
/* Sets output number i. */
void stk_rule_out(stk_op_call *call, int i, stk_dtype dtype, stk_shape shape);
stk_shape stk_rule_scalar_shape(void);
stk_shape stk_rule_vector_shape(int64_t n);
/* All axes of the shape, bit by bit. */
uint32_t stk_rule_all_axes(stk_shape shape);

/* --- cost --- */

/* Bytes of all inputs and outputs, each once. */
double stk_rule_bytes(const stk_op_call *call);
/* The product of the dimensions as a double; unknown ones count as 1. */
double stk_rule_count(stk_shape shape);

/* --- windows of convolution and pooling --- */

/* 2 for images, 3 for volumes. */
int stk_rule_window_dims(const stk_window *window);
/* The name of dimension i of that many: "height". */
const char *stk_rule_side(int n_dims, int i);
/* Output sizes for an image of x[N,H,W,C] or a volume of x[N,D,H,W,C]; kernels must fit into the padded image. */
stk_status stk_rule_window_out(const stk_window *window, stk_shape x, int64_t out[3]);
/* x with these sizes and channels. */
stk_shape stk_rule_window_shape(stk_shape x, const int64_t out[3], int64_t channels);
void stk_rule_print_window(const stk_attrs *attrs, stk_text *out);
/* Taps a window: the product of the kernel. */
double stk_rule_window_taps(const stk_window *window);

#endif

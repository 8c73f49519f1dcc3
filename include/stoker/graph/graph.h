/* Graphs: values and the operations between them. One static graph describes a whole step.
 *
 * A stk_value is a small handle, passed by value. Building never crashes: the graph keeps its first error, later calls
 * are no-ops that return values without an id, and stk_graph_status tells at the end. Layouts are row-major; images are
 * NHWC; convolution weights OHWI. The batch dimension of a model may be STK_ANY until it is trained or evaluated.
 * Layers with parameters are in nn.h. Threads: one at a time for each graph.
 */
#ifndef STOKER_GRAPH_GRAPH_H
#define STOKER_GRAPH_GRAPH_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_graph stk_graph;

typedef struct stk_value {
    stk_graph *graph; /* borrowed */
    int32_t id;       /* -1: none, or after an error */
} stk_value;

/* How a variable's first content is made: from the engine's seed and the variable's name, whatever the order. */
typedef enum stk_init_kind { STK_INIT_CONSTANT, STK_INIT_UNIFORM, STK_INIT_NORMAL, STK_INIT_IDENTITY } stk_init_kind;
typedef struct stk_init {
    stk_init_kind kind;
    double a; /* the constant; uniform in [-a, a); normal with deviation a. IDENTITY: uniform, but of a weight
                 [O,...,C] the first C outputs (or all) give the inputs as they are: 1 in the middle, else 0 */
} stk_init;

STK_API stk_graph *stk_graph_new(void);        /* never NULL; out of memory is an error like any other */
STK_API void stk_graph_free(stk_graph *graph); /* accepts NULL */
STK_API stk_status stk_graph_status(const stk_graph *graph);
STK_API stk_shape stk_value_shape(stk_value x); /* rank 0 for no value */
STK_API stk_dtype stk_value_dtype(stk_value x);

/* --- leaves --- */
/* Bound before each run. */
STK_API stk_value stk_graph_input(stk_graph *graph, const char *name, stk_dtype dtype, stk_shape shape);
/* Kept between runs; `trainable` ones get gradients from stk_model's training. Names are unique in a graph. */
STK_API stk_value stk_graph_variable(stk_graph *graph, const char *name, stk_dtype dtype, stk_shape shape,
                                     stk_init init, bool trainable);
STK_API stk_value stk_graph_constant(stk_graph *graph, stk_dtype dtype, stk_shape shape, double value);

/* What is built between push and pop computes in f32 when training is in bf16 or f16. May be nested. */
STK_API void stk_f32_push(stk_graph *graph);
STK_API void stk_f32_pop(stk_graph *graph);

/* --- roots --- */
/* The value can be read by name after each run. */
STK_API void stk_graph_output(stk_graph *graph, const char *name, stk_value x);
/* At the end of each run variable becomes x; every reader inside the run sees the old content. */
STK_API void stk_graph_update(stk_graph *graph, stk_value variable, stk_value x);
/* The text of the graph, one node a line. Returned: free with free(). NULL when out of memory. */
STK_API char *stk_graph_print(const stk_graph *graph);

/* --- element by element --- */
#define STK_UNARY_LIST(X)                                                                                              \
    X(neg)                                                                                                             \
    X(abs)                                                                                                             \
    X(exp)                                                                                                             \
    X(log)                                                                                                             \
    X(sqrt)                                                                                                            \
    X(rsqrt)                                                                                                           \
    X(reciprocal)                                                                                                      \
    X(square)                                                                                                          \
    X(tanh)                                                                                                            \
    X(sigmoid)                                                                                                         \
    X(relu)                                                                                                            \
    X(sign)                                                                                                            \
    X(erf)                                                                                                             \
    X(sin)                                                                                                             \
    X(cos)                                                                                                             \
    X(floor)                                                                                                           \
    X(ceil)                                                                                                            \
    X(round) /* ties to even */                                                                                        \
    X(log1p) /* log(1 + x), exact near 0 */                                                                            \
    X(expm1) /* exp(x) - 1, exact near 0 */
#define STK_BINARY_LIST(X)  X(add) X(sub) X(mul) X(div) X(max) X(min) X(pow)
#define STK_COMPARE_LIST(X) X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal)

/* stk_neg(x), stk_relu(x), ...: any float dtype (neg, abs, square, sign, relu: signed integers too). */
#define X(name) STK_API stk_value stk_##name(stk_value x);
STK_UNARY_LIST(X)
#undef X
/* stk_add(a, b), ...: equal dtypes; shapes are broadcast by numpy's rule. */
#define X(name) STK_API stk_value stk_##name(stk_value a, stk_value b);
STK_BINARY_LIST(X)
STK_COMPARE_LIST(X) /* give bool */
#undef X
/* condition bool; like condition ? a : b, broadcast. */
STK_API stk_value stk_select(stk_value condition, stk_value a, stk_value b);
STK_API stk_value stk_cast_to(stk_value x, stk_dtype dtype);
STK_API stk_value stk_scale_by(stk_value x, double factor);
STK_API stk_value stk_shift_by(stk_value x, double term);

/* --- shapes --- */
STK_API stk_value stk_broadcast(stk_value x, stk_shape shape);
/* One dimension may be STK_ANY: what is left, or the batch of x where that is STK_ANY, or a multiple or share of it:
 * [?,T,C] may become [?,C], all rows of all samples, and back. */
STK_API stk_value stk_reshape(stk_value x, stk_shape shape);
STK_API stk_value stk_transpose(stk_value x, const int32_t *permutation); /* permutation[rank] */
/* Elements start, start + step, ... below stop on each axis; step >= 1; stop may lie past the end. Arrays of [rank]. */
STK_API stk_value stk_slice(stk_value x, const int64_t *start, const int64_t *stop, const int64_t *step);
STK_API stk_value stk_pad(stk_value x, const int64_t *low, const int64_t *high, double value);
STK_API stk_value stk_concat(const stk_value *x, int n, int axis);

/* --- over axes (bit i of axes: axis i; 0: all); the axes are removed --- */
STK_API stk_value stk_reduce_sum(stk_value x, uint32_t axes);
STK_API stk_value stk_reduce_mean(stk_value x, uint32_t axes);
STK_API stk_value stk_reduce_max(stk_value x, uint32_t axes);
STK_API stk_value stk_reduce_min(stk_value x, uint32_t axes);
STK_API stk_value stk_reduce_prod(stk_value x, uint32_t axes);

/* --- library operations --- */
/* a [..., M, K] (or [..., K, M] transposed), b [K, N] or batched like a (or transposed) -> [..., M, N]. */
STK_API stk_value stk_matmul(stk_value a, stk_value b, bool transpose_a, bool transpose_b);

/* Sizes are for height, then width; of volumes for depth, height and width. */
typedef struct stk_window {
    int32_t kernel[3], stride[3], pad_low[3], pad_high[3], dilation[3]; /* the third is 0 for images */
    int32_t groups;                                                     /* convolution only */
} stk_window;
/* stride, dilation and groups 1, no padding. */
STK_API stk_window stk_window_make(int32_t kernel_h, int32_t kernel_w);
STK_API stk_window stk_window_make_3d(int32_t kernel_d, int32_t kernel_h, int32_t kernel_w);

/* x [N,H,W,C], weight [O,KH,KW,C/groups] -> [N,H',W',O]. Cross-correlation, as everywhere in deep learning. */
STK_API stk_value stk_conv2d_raw(stk_value x, stk_value weight, stk_window window);
/* x [N,D,H,W,C], weight [O,KD,KH,KW,C/groups] -> [N,D',H',W',O]. */
STK_API stk_value stk_conv3d_raw(stk_value x, stk_value weight, stk_window window);
/* The transpose of the convolution with that weight and window, which is its gradient of data: x [N,H,W,O], weight
 * [O,KH,KW,C/groups] -> [N,H',W',C] with H' = (H - 1) * stride - padding + dilation * (kernel - 1) + 1 + more[0], the
 * same for W' and more[1]. more must be less than the stride, since those sizes give the same H and W back. In three
 * dimensions accordingly. Zeiler et al. 2010. */
STK_API stk_value stk_conv2d_transpose_raw(stk_value x, stk_value weight, stk_window window, const int32_t more[2]);
STK_API stk_value stk_conv3d_transpose_raw(stk_value x, stk_value weight, stk_window window, const int32_t more[3]);
STK_API stk_value stk_max_pool2d_raw(stk_value x, stk_window window);
STK_API stk_value stk_max_pool3d_raw(stk_value x, stk_window window);
/* The mean of the pixels inside the image; padding is not counted. */
STK_API stk_value stk_avg_pool2d_raw(stk_value x, stk_window window);
STK_API stk_value stk_avg_pool3d_raw(stk_value x, stk_window window);
/* Over the last axis. */
STK_API stk_value stk_softmax(stk_value x);
/* (x - mean) / sqrt(variance + eps) * scale + bias over the last axis of x [...,C], the variance divided by C; scale
 * and bias [C] are f32 (f64 for f64 x), and so are the statistics. Ba et al. 2016. */
STK_API stk_value stk_layer_norm_raw(stk_value x, stk_value scale, stk_value bias, double eps);
/* The same over the channels of a group: x [N,...,C] in `groups` groups of neighbouring channels, over all axes but N.
 * Wu & He 2018; instance norm with as many groups as channels. */
STK_API stk_value stk_group_norm_raw(stk_value x, stk_value scale, stk_value bias, int64_t groups, double eps);
/* numpy.take(x, ids, axis): ids i32 of any shape, whose axes take the place of that axis. Here and below an id that is
 * not in [0, size of the axis) fails the run with STK_CORRUPT. */
STK_API stk_value stk_gather(stk_value x, stk_value ids, int axis);
/* base, with rows of dy added along the axis where ids tell; dy is shaped as stk_gather(base, ids, axis). Rows of equal
 * ids are added in their order. */
STK_API stk_value stk_scatter_add(stk_value base, stk_value ids, stk_value dy, int axis);
/* Rows of weight [V,D] by number: ids i32 [...] -> [...,D]. */
STK_API stk_value stk_embedding_raw(stk_value weight, stk_value ids);
/* The index along the axis: 0, 1, ... */
STK_API stk_value stk_iota(stk_graph *graph, stk_dtype dtype, stk_shape shape, int axis);
/* The index of the largest along the axis, which is removed, as i32. The first of several, or the last; a NaN is the
 * largest. */
STK_API stk_value stk_argmax(stk_value x, int axis, bool last);
/* Sums of the elements up to each along the axis, itself included unless exclusive; from the end with reverse. */
STK_API stk_value stk_cumsum(stk_value x, int axis, bool exclusive, bool reverse);
/* x on another device of the program that the graph becomes, by number; its gradient is copied back. */
STK_API stk_value stk_copy_to(stk_value x, int device);
/* out[i], which lies where x[i] does, is the sum of x[0] to x[n-1] in this order, or their mean. At most 8, all of one
 * type of floats. */
STK_API void stk_all_reduce(const stk_value *x, int n, bool mean, stk_value *out);
/* out[i] is the sum of x[i] over all ranks of the training, 1 to 32 values of one dtype, f32 or f64; all ranks come to
 * it in the same order. Only where a trainer has ranks (stoker/train/trainer.h). */
STK_API void stk_rank_sum(const stk_value *x, int n, stk_value *out);
/* logits [N,C]; labels i32 [N], or f32 [N,C] of shares -> loss f32 [N]. smoothing moves that share of each label to all
 * classes alike. Here and below a label that is none of the C classes fails the run with STK_CORRUPT. */
STK_API stk_value stk_cross_entropy_raw(stk_value logits, stk_value labels, double smoothing);
/* logits [N,C], labels i32 [N] -> f32 [N]: 1 where the label is among the k largest (ties: lower class first). */
STK_API stk_value stk_in_top_k(stk_value logits, stk_value labels, int k);
/* Zeroes a share `rate` of x [N,...] and scales the rest by 1/(1-rate). The mask of row i depends on (seed, stream,
 * sample + i) only; seed and sample are i64 scalars. Srivastava et al. 2014. */
STK_API stk_value stk_dropout_raw(stk_value x, stk_value seed, stk_value sample, double rate, int64_t stream);

typedef struct stk_attention {
    double scale; /* of q k'; 0: 1 / sqrt(D) */
    bool causal;  /* query t sees keys 0 .. t only; where T and S differ they are counted from the first, too */
    double
        dropout; /* the share of the weights that becomes 0, after the softmax; the rest is scaled by 1/(1-dropout) */
    int64_t stream; /* of dropout's random numbers: one for each place in the model */
} stk_attention;

/* softmax(q k' scale) v for each head: q [N,T,H,D], k and v [N,S,H,D] -> [N,T,H,D]. T x S weights are never stored,
 * forward or backward: memory grows with T + S. mask bool [N,S] (id -1: none): a key whose mask is false counts as
 * absent; a query that sees no key gives 0. seed and sample, i64 scalars, are read with dropout only; its mask depends
 * on (seed, stream, sample + n, head, query, key). Dao et al. 2022. */
STK_API stk_value stk_attention_raw(stk_value q, stk_value k, stk_value v, stk_value mask, stk_value seed,
                                    stk_value sample, stk_attention options);

/* x [N,S,...] with rows [N,T,...] in the place of rows position .. position + T - 1; position is an i64 scalar, and one
 * that does not fit fails the run with STK_INVALID. No gradient. */
STK_API stk_value stk_write_at(stk_value x, stk_value rows, stk_value position);
/* Attention of new positions to all so far: q [N,T,H,D], k and v [N,S,H,D], of which rows 0 .. position + T - 1 are
 * filled and others are not read; query t sees rows 0 .. position + t. scale as in stk_attention. No gradient. */
STK_API stk_value stk_cached_attention(stk_value q, stk_value k, stk_value v, stk_value position, double scale);

/* One direction of a recurrent layer, all steps: weight [GH,H] and bias [GH] of the state, and the states that it
 * begins with [N,H]; c0 of LSTM only. mask bool [N,T] (id -1: all count): other steps leave the states as they are. */
typedef struct stk_recurrence {
    stk_value weight, bias, h0, c0, mask;
    bool reverse; /* from the last step to the first */
} stk_recurrence;

/* x [N,T,GH], what the inputs give to the gates (i, f, g, o; r, z, n) with their bias -> the states h [N,T,H] behind
 * each step; output 1 of LSTM's node is c [N,T,H]. Hochreiter & Schmidhuber 1997; Cho et al. 2014, with the reset gate
 * behind the product. Compiling takes the same time whatever T is; a device without the kernel has up to 4,096 steps.
 */
STK_API stk_value stk_lstm_raw(stk_value x, const stk_recurrence *r);
STK_API stk_value stk_gru_raw(stk_value x, const stk_recurrence *r);

typedef struct stk_linear_cross_entropy {
    double smoothing;     /* moves that share of each label to all classes alike */
    int64_t ignore_index; /* rows with this label have loss 0 and gradient 0; it may be outside of the classes */
} stk_linear_cross_entropy;
STK_API stk_linear_cross_entropy stk_linear_cross_entropy_default(void); /* no smoothing; ignores -100 */

/* The cross-entropy of the logits x weight': x [M,D], weight [V,D], labels i32 [M] -> loss f32 [M]. The logits [M,V]
 * are never stored whole, forward or backward. */
STK_API stk_value stk_linear_cross_entropy_raw(stk_value x, stk_value weight, stk_value labels,
                                               stk_linear_cross_entropy options);

/* d(sum of y) / d(variable or any value that y depends on): a placeholder until autodiff replaces it. A value like
 * others, which may be differentiated again; STK_UNSUPPORTED, at compiling, where an op on the way has no second
 * derivative: convolution, pooling, softmax, normalisation, attention, recurrent layers. */
STK_API stk_value stk_grad(stk_value y, stk_value x);

#ifdef __cplusplus
}
#endif
#endif

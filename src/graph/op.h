/* What an op is: its attributes, the rule that src/ops gives for it, and one call of it with all shapes known.
 *
 * Signatures (inputs -> outputs), N the batch:
 *   input, variable, constant       -> x                                  attrs: dtype, shape; leaf / constant
 *   grad                            y, x -> dx                            replaced by autodiff
 *   unary, binary, compare          x | a, b (equal shapes) -> y          attrs: kind
 *   select                          condition bool, a, b (equal shapes) -> y
 *   cast                            x -> y                                attrs: dtype
 *   broadcast                       x -> y                                attrs: shape; numpy's rule, ranks may grow
 *   reshape                         x -> y                                attrs: shape (same count)
 *   transpose                       x -> y                                attrs: permutation: y.dim[i] = x.dim[p[i]]
 *   slice                           x -> y                                attrs: slice
 *   slice_grad                      dy -> dx                              attrs: slice, shape of x; zeros elsewhere
 *   pad                             x -> y                                attrs: pad
 *   concat                          x0, x1, ... -> y                      attrs: axis
 *   reduce                          x -> y                                attrs: reduce (kind, axes, wide); axes are
 *                                                                         removed; wide: y is f32 where x has 16 bits
 *   matmul                          a, b, [bias [N]] -> c                 attrs: matmul; wide as for reduce
 *                                     bias: f32 (f64 for f64), added before c is rounded; made by pass_fuse_epilogue
 *   conv2d                          x, weight, [bias [O]] -> y            attrs: window, activation
 *                                     bias, activation: as for matmul's bias, in the sums before y is rounded
 *   conv2d_grad_data                dy, weight, [bias [C]] -> dx          attrs: window, shape of x, activation
 *                                     bias, activation: as for conv2d; cpu kernels that are oneDNN's round bf16 before
 *   conv2d_grad_weight              x, dy -> dweight                      attrs: window, shape of weight
 *                                     f32 where x has 16 bits
 *   max_pool2d, avg_pool2d          x -> y                                attrs: window
 *   max_pool2d_grad                 x, y, dy -> dx                        attrs: window; the first maximum gets all
 *   avg_pool2d_grad                 dy -> dx                              attrs: window, shape of x
 *   conv3d, ..., avg_pool3d_grad    the seven above on volumes [N,D,H,W,C], weight [O,KD,KH,KW,C/groups]
 *   batch_norm                      x [..., C], scale, bias, running_mean, running_var (all f32 [C]), [residual]
 *                                     -> y, mean, inv_std, new_running_mean, new_running_var   attrs: batch_norm
 *                                     residual: added before the ReLU; made by pass_fuse_residual
 *   batch_norm_grad                 dy, x, scale, bias, mean, inv_std -> dx, dscale, dbias
 *                                     attrs: batch_norm; with relu, dy counts where the forward output was > 0
 *   accumulate                      x, row i64 [] -> y [, levels]         y = x where row is 0, else y + x, where y is
 *                                     what the micro-batch before left; made by pass_accumulate
 *                                     attrs: accumulate; in_place: x lies where y does and is the sum already
 *                                     log2_parts 2 .. STK_MOST_LEVELS: a sum in a binary tree over 2^log2_parts
 *                                     micro-batches of `rows` rows, whole behind the last; one more output a level
 *                                     above the first, for sums that are not whole yet
 *   carry                           row i64 [] -> y                       what the micro-batch before left there, zeros
 *                                     where row is 0; made by pass_carry              attrs: dtype, shape
 *   batch_norm_apply                x, scale, bias, mean, inv_std, [residual] -> y
 *                                     attrs: batch_norm; made by pass_recompute
 *   batch_norm_sum_grad             x, dy, dy2, y, scale, mean, inv_std -> dx, dscale, dbias, d   attrs: batch_norm
 *                                     batch_norm_grad of d = (dy + dy2 where y > 0); made by pass_fuse_residual
 *   layer_norm                      x [...,C], scale, bias (f32 [C]) -> y, mean, inv_std (f32 [...])
 *                                     attrs: layer_norm
 *   layer_norm_grad                 dy, x, scale, mean, inv_std -> dx, dscale, dbias
 *   group_norm                      x [N,...,C], scale, bias (f32 [C]) -> y, mean, inv_std (f32 [N,G])
 *                                     attrs: group_norm
 *   group_norm_grad                 dy, x, scale, mean, inv_std -> dx, dscale, dbias             attrs: group_norm
 *   gather                          x, ids i32 [...] -> y                 attrs: axis, whose place ids' axes take
 *   scatter_add                     dy, ids, base or nothing (zeros) -> base plus dy's rows at ids
 *                                     attrs: axis, shape of base; dy is shaped as gather's y of such an x
 *   iota                            -> y                                  attrs: dtype, shape, axis; the index along it
 *   argmax                          x -> i32, without the axis            attrs: argmax
 *   cumsum                          x -> y                                attrs: cumsum
 *   softmax                         x -> y                                over the last axis
 *   softmax_grad                    y, dy -> dx
 *   cross_entropy                   logits [N,C], labels i32 [N] or f32 [N,C] -> loss f32 [N]   attrs: cross_entropy
 *   cross_entropy_grad              logits, labels, dloss f32 [N] -> dlogits                    attrs: cross_entropy
 *   in_top_k                        logits [N,C], labels i32 [N] -> f32 [N]                     attrs: k
 *   dropout                         x, seed i64 [], sample i64 [] -> y    attrs: dropout; its own gradient rule
 *   attention                       q [N,T,H,D], k, v [N,S,H,D], [mask bool [N,S]], [seed i64 [], sample i64 []]
 *                                     -> y [N,T,H,D], lse f32 [N,H,T] (-inf: no key)              attrs: attention
 *   attention_grad                  dy, q, k, v, y, lse, [mask], [seed, sample] -> dq, dk, dv     attrs: attention
 *   cached_attention                q [N,T,H,D], k, v [N,S,H,D], position i64 [] -> y [N,T,H,D]  attrs: attention
 *                                     (its scale); query t sees keys 0 .. position + t
 *   write_at                        x [N,S,...], rows [N,T,...], position i64 [] -> y             x with the rows at
 *                                     position on axis 1
 *   lstm                            x [N,T,4H], weight [4H,H], bias [4H], h0, c0 [N,H], [mask bool [N,T]]
 *                                     -> h, c [N,T,H], gates [N,T,4H]     attrs: recurrent; see ops/recurrent.h
 *   lstm_grad                       dh, c, gates, weight, c0, [mask], [dc] -> dx, dh0, dc0       attrs: recurrent
 *   gru                             x [N,T,3H], weight [3H,H], bias [3H], h0 [N,H], [mask]
 *                                     -> h [N,T,H], gates [N,T,3H], part [N,T,H]                  attrs: recurrent
 *   gru_grad                        dh, h, gates, part, weight, h0, [mask] -> dx, dstate [N,T,3H], dh0
 *                                     attrs: recurrent
 *   linear_cross_entropy            x [M,D], weight [V,D], labels i32 [M] -> loss f32 [M]  attrs: linear_cross_entropy
 *   linear_cross_entropy_grad       x, weight, labels, dloss f32 [M] -> dx, dweight, loss  attrs: linear_cross_entropy
 *                                   x, weight, labels, dloss, base -> dx, base + dweight, loss
 *   sgd_update                      param, grad, lr f32 [] -> param      where momentum is 0, else
 *                                   param, velocity, grad, lr -> param, velocity                 attrs: sgd
 *   adam_update                     param, m, v, grad, lr f32 [], step i64 [] (0 at first) -> param, m, v  attrs: adam
 *   copy_to                         x -> y                                attrs: copy_to; y lies on that device
 *   all_reduce                      x0, x1, ... (equal types) -> y0, y1, ...   attrs: all_reduce; each y is the sum of
 *                                   all x, in their order, or their mean; y_i lies where x_i does
 *   rank_sum                        x0, x1, ... (one dtype) -> y0, y1, ...   y_i is the sum of x_i over all ranks
 *   rank_scatter                    x -> y [K]                            attrs: ranks; this rank's part of the sum of
 *                                     x over all ranks: elements K * rank and on, zeros behind the last; K n is no
 *                                     less than the elements of x
 *   rank_part                       x -> y [K]                            attrs: ranks; the same of this rank's x
 *   rank_gather                     y [K], x -> x                         attrs: ranks; all ranks' parts, shaped as x
 *   rank_begin                      x0, x1, ... -> t                      attrs: ranks; begins a rank_sum of these;
 *                                   x -> t [K], [padded x]                  or a rank_scatter
 *   rank_await                      [x0, x1, ...], t -> y0, y1, ...       attrs: ranks; ends it; t of one value is
 *                                   t [K], x or its padded form -> y [K]    alone, and nobody else looks at t
 *   fused                           x0, x1, ... -> y0, y1, ..., and what one of the values adds up to   attrs: fused
 */
#ifndef STK_GRAPH_OP_H
#define STK_GRAPH_OP_H

#include "base/text.h"
#include "graph/op_list.h"
#include "stoker/graph/graph.h"
#include "tensor/shape.h"

/* Of one program, and virtual ones of one kind (device/device.h). */
enum { STK_MOST_DEVICES = 8 };
/* Outputs of one node; inputs that those ask for who look at all of a node, which fused ones may exceed. */
enum { STK_MOST_OUTPUTS = 32, STK_MOST_INPUTS = 64 };
/* Values of one rank_sum. */
enum { STK_MOST_RANK_SUMS = STK_MOST_OUTPUTS };
/* Of a sum over micro-batches in a tree. */
enum { STK_MOST_LEVELS = 6 };
/* Pairs of rank_begin and rank_await that are under way at once, with room. */
enum { STK_MOST_TICKETS = 16 };

typedef enum stk_op {
#define X(name) STK_OP_##name,
    STK_OP_LIST(X)
#undef X
        STK_N_OPS
} stk_op;

/* Of those that the engine does through comm. */
static inline bool stk_op_is_of_ranks(stk_op op)
{
#define X(name) || op == STK_OP_##name
    return false STK_RANK_OP_LIST(X);
#undef X
}

#define X(name) STK_UNARY_##name,
typedef enum stk_unary_kind { STK_UNARY_LIST(X) STK_N_UNARY } stk_unary_kind;
#undef X
#define X(name) STK_BINARY_##name,
typedef enum stk_binary_kind { STK_BINARY_LIST(X) STK_N_BINARY } stk_binary_kind;
#undef X
#define X(name) STK_COMPARE_##name,
typedef enum stk_compare_kind { STK_COMPARE_LIST(X) STK_N_COMPARE } stk_compare_kind;
#undef X
typedef enum stk_reduce_kind {
    STK_REDUCE_SUM,
    STK_REDUCE_MEAN,
    STK_REDUCE_MAX,
    STK_REDUCE_MIN,
    STK_REDUCE_PROD,
    STK_N_REDUCE
} stk_reduce_kind;

/* What is done to the sums of a product behind its bias, before they are rounded; made by pass_fuse_epilogue. */
typedef enum stk_activation { STK_ACTIVATION_NONE, STK_ACTIVATION_RELU } stk_activation;

typedef struct stk_fused stk_fused; /* graph/fused.h */

/* What is of the op compares as bytes: always start from stk_attrs_zero(). Shapes stand in `shape` only, so that a
 * batch can be bound in one place. */
typedef struct stk_attrs {
    stk_dtype dtype;
    int32_t activation; /* stk_activation; conv2d, conv3d */
    int32_t tf32;       /* may round f32 to TF32 where it is multiplied: of ops that stk_op_takes_tf32 says */
    stk_shape shape;
    union {
        struct {
            stk_init init;
            int32_t trainable;
            const void *content; /* of a variable, instead of init; NULL: none. See stk_graph_set_content */
            int32_t n_parts;     /* of a variable: each of that many ranks has a part of it, [K]; 0: all of it */
            stk_shape whole;     /* with n_parts */
        } leaf;
        struct {
            double value;
        } constant;
        struct {
            int32_t kind; /* unary, binary, compare */
        } element;
        struct {
            int32_t kind;
            uint32_t axes; /* never 0 here: all axes are spelled out */
            int32_t wide;
        } reduce;
        int32_t permutation[STK_MAX_RANK];
        struct {
            int64_t start[STK_MAX_RANK], stop[STK_MAX_RANK], step[STK_MAX_RANK];
        } slice;
        struct {
            int64_t low[STK_MAX_RANK], high[STK_MAX_RANK];
            double value;
        } pad;
        struct {
            int32_t axis;
        } concat;
        struct {
            int32_t transpose_a, transpose_b, wide;
        } matmul;
        stk_window window;
        struct {
            double eps, momentum; /* running = running * (1 - momentum) + batch * momentum */
            int32_t unbiased;     /* running variance is divided by n - 1, as PyTorch does; Keras: n */
            int32_t relu;         /* y = max(0, ...) in the same sweep */
            int32_t frozen; /* training, too, goes by the running statistics, which stay; gone after pass_inference */
        } batch_norm;
        struct {
            double eps;
        } layer_norm;
        struct {
            double eps;
            int64_t groups;
        } group_norm;
        int32_t axis; /* gather, scatter_add, iota */
        struct {
            int32_t axis, last; /* last: among ties the last */
        } argmax;
        struct {
            int32_t axis, exclusive, reverse;
        } cumsum;
        struct {
            double smoothing;
        } cross_entropy;
        struct {
            int32_t k;
        } in_top_k;
        struct {
            double rate;
            int64_t stream;
        } dropout;
        struct {
            double scale, rate; /* of q k'; of dropout */
            int64_t stream;
            int32_t causal; /* query t sees keys 0 .. t */
        } attention;
        struct {
            int32_t reverse; /* from the last step to the first */
            int32_t has_mask;
        } recurrent;
        struct {
            double smoothing;
            int64_t ignore_index;
        } linear_cross_entropy;
        struct {
            int32_t in_place;
            int32_t log2_parts; /* 0, 1: added up one after the other */
            int64_t rows;       /* of a micro-batch, with log2_parts */
        } accumulate;
        struct {
            double momentum, weight_decay;
            int32_t nesterov;
            int32_t like_keras; /* the rate goes inside the velocity, and the decay acts on the parameter */
        } sgd;
        struct {
            double beta1, beta2, eps, weight_decay;
            int32_t decoupled;  /* the decay acts on the parameter, not on the gradient */
            int32_t like_keras; /* eps is added to sqrt(v) with the bias correction folded into the rate */
        } adam;
        struct {
            int32_t device;
        } copy_to;
        struct {
            int32_t mean;
        } all_reduce;
        struct {
            int32_t n;      /* rank_begin, rank_await: 0 of a rank_sum */
            int32_t ticket; /* rank_begin, rank_await: which belong together, below STK_MOST_TICKETS */
        } ranks;            /* rank_scatter, rank_part, rank_gather, rank_begin, rank_await */
        struct {
            const stk_fused *program; /* borrowed from the graph */
        } fused;
    };
} stk_attrs;

stk_attrs stk_attrs_zero(void);
/* Of an accumulate over n_parts micro-batches, a power of two, of that many rows each. */
stk_attrs stk_accumulate_tree(int64_t n_parts, int64_t rows);
/* Where the sum of 2^level of them waits for its neighbour, out being the op's results; on the topmost level, and when
 * it is whole, that is y. */
static inline void *stk_accumulate_level(void *const *out, int n_levels, int level)
{
    return level < n_levels - 1 ? out[1 + level] : out[0];
}
/* Products and convolutions, and their gradients. */
bool stk_op_takes_tf32(stk_op op);
bool stk_attrs_equal(const stk_attrs *a, const stk_attrs *b);
/* The same for equal ones. */
uint64_t stk_attrs_hash(const stk_attrs *attrs, uint64_t seed);

/* One call of an op, as rules and kernels see it. All arrays borrowed. */
typedef struct stk_op_call {
    stk_op op;
    const stk_attrs *attrs;
    int n_in, n_out;
    const stk_tensor_desc *in;
    stk_tensor_desc *out; /* infer fills it; kernels read it */
} stk_op_call;

typedef struct stk_cost {
    double flops, bytes; /* arithmetic; what must be read and written at least */
} stk_cost;

/* For grad rules. in and out are the node's values; grad_out[i].id is -1 where no gradient flows. A rule adds nodes and
 * sets grad_in[i] for each i with need[i]; grad_in[i].id stays -1 where the gradient is zero. */
typedef struct stk_grad_call {
    stk_graph *graph;
    const stk_attrs *attrs;
    int n_in, n_out;
    const stk_value *in, *out, *grad_out;
    const bool *need;
    stk_value *grad_in;
} stk_grad_call;

/* For decompose rules, once all shapes are known: in and out are the node's values. A rule adds nodes and sets made[i]
 * to a value of the dtype and shape of output i; where this very call has no composition all stay -1. */
typedef struct stk_decompose_call {
    stk_graph *graph;
    const stk_attrs *attrs;
    int n_in, n_out;
    const stk_value *in, *out;
    stk_value *made;
} stk_decompose_call;

typedef enum stk_op_kind {
    STK_KIND_LEAF,
    STK_KIND_ELEMENT, /* element-wise: may join a fused group */
    STK_KIND_BROADCAST,
    STK_KIND_REDUCE,
    STK_KIND_OPAQUE
} stk_op_kind;

/* What pass autocast does with an op's float inputs when training is in 16 bits. */
typedef enum stk_autocast {
    STK_AUTOCAST_WIDE,   /* f32: whatever is not said to be safe */
    STK_AUTOCAST_NARROW, /* 16 bits: products, which sum up in f32 inside; f32 for the last one, whose sums are logits
                          */
    STK_AUTOCAST_LOSS,   /* 16 bits: a product whose logits never leave f32 */
    STK_AUTOCAST_FOLLOW, /* as they come; f32 where some are and are no parameters or constants */
    STK_AUTOCAST_FIRST,  /* input 0 as it comes, the others f32: normalisations, whose parameters are f32 in any case */
    STK_AUTOCAST_RESULT  /* as FOLLOW, but what is read of a parameter is rounded after, not the whole of it before */
} stk_autocast;

typedef struct stk_op_rule {
    const char *name;
    stk_op_kind kind;
    int n_in; /* -1: any */
    int n_out;
    /* Fills call->out (n_out is set). Error texts start with what is wrong: "weight [8,3,3,4] needs 4 channels ...". */
    stk_status (*infer)(stk_op_call *call);
    /* Adds the gradient's nodes; NULL: no gradient (an error where one is needed), see stk_op_is_constant. */
    stk_status (*grad)(const stk_grad_call *call);
    void (*cost)(const stk_op_call *call, stk_cost *cost); /* NULL: one flop an output element, all bytes once */
    void (*print)(const stk_attrs *attrs, stk_text *out);  /* attributes, " kind=relu"; NULL: none */
    /* The op out of others, for devices that have no kernel of it; errors stay in the graph. NULL: a primitive, which
     * every device has, or an op that a pass makes only for devices that have it. */
    void (*decompose)(const stk_decompose_call *call);
    stk_autocast autocast;
    bool stops_gradient; /* outputs do not depend smoothly on inputs (compare, in_top_k): gradients are zero */
} stk_op_rule;

#define X(name) extern const stk_op_rule stk_rule_##name;
STK_OP_LIST(X)
#undef X

const stk_op_rule *stk_op_get_rule(stk_op op);
const char *stk_op_name(stk_op op);
const char *stk_unary_name(int kind);
const char *stk_binary_name(int kind);
const char *stk_compare_name(int kind);
const char *stk_reduce_name(int kind);

/* Cost of one call, by its rule or the default. */
stk_cost stk_op_cost(const stk_op_call *call);

#endif

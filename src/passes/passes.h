/* The passes: each rewrites a graph in place, is one file with one function, and may be left out, printed and tested
 * alone. The engine runs them in this order:
 *
 *   unpack_pixels (off the host) -> place (several devices) -> autocast (16 bits only)
 *     -> loss_scale (f16, or on_nan: skip) -> narrow -> inference (evaluation only) -> fuse_norm_relu
 *     -> accumulate -> replicate (several ranks) -> autodiff -> simplify
 *     -> fuse_loss -> carry -> remask -> recompute -> decompose -> fuse_residual -> fuse_epilogue -> fuse
 *     -> postpone -> overlap (several ranks) -> settle (several devices) -> plan
 *
 * What not every device can do (fused epilogues, sums in place, ...) a pass makes only where the device's capabilities
 * say so (device.h).
 *
 * unpack_pixels   images arrive as u8, and are normalised in the step; first, since it changes what inputs are
 * place           a device for every value, copies between devices; before autodiff: the gradient of a copy is one
 * autocast        16-bit products and activations, f32 for the rest; before all that reads dtypes
 * loss_scale      a larger loss for 16-bit gradients, and skipped steps; before autodiff, which ends their marks
 * narrow          f64 that a graph makes of narrower numbers is f32, for devices without; before more is made of it
 * inference       batch norm by running statistics, no dropout, no updates; after autocast, which knows batch norms
 * fuse_norm_relu  ReLU into the batch norm before it; before autodiff, so that the gradient is fused too
 * accumulate      sums over micro-batches; before autodiff, while gradients still have marks
 * replicate       sums over ranks behind those over micro-batches; behind accumulate, which marks them all
 * autodiff        replaces grad nodes; needs every other op to have its gradient rule
 * simplify        folds constants, drops what does nothing, merges equal nodes; needs autodiff to be done
 * fuse_loss       the loss of a linear layer's logits from the op that makes their gradient; after simplify, too
 * carry           large gradients are added to their sums over micro-batches in place; after fuse_loss
 * remask          dropout's mask from its result, where that tells it; after simplify, which makes equal inputs one
 * recompute       forward values are recomputed later instead of being kept; simplify would merge them again
 * decompose       what the device lacks becomes primitives; after recompute, which chooses among whole ops
 * fuse_residual   batch norm with the sum and the ReLU behind it, and their gradients, as one; before fuse
 * fuse_epilogue   a matmul or convolution adds the bias behind it, a convolution does the ReLU; before fuse
 * fuse            element-wise groups, with a reduction behind, become one node each; settle alone adds nodes behind it
 * postpone        what can wait goes to the end: small updates, for devices that join them, sums over ranks of results
 * overlap         sums of gradients over ranks begin and are awaited later; behind all that looks for them
 * settle          devices for what the other passes made, and copies; after all of them
 * plan            gives each value a place; not a rewriting, see plan.h
 */
#ifndef STK_PASSES_PASSES_H
#define STK_PASSES_PASSES_H

#include "device/device.h"
#include "graph/graph.h"
#include "graph/place.h"
#include "stoker/train/optim.h"

/* Calls of ranks under way at once: twice that is what communications have room for. */
enum { STK_MOST_OVERLAP = 8 };

/* What pass_recompute did. */
typedef struct stk_recompute_report {
    int32_t n_kept, n_dropped; /* values that the backward pass reads; those of them that are recomputed */
    double flops;              /* that recomputing them takes */
} stk_recompute_report;

typedef struct stk_pass_options {
    const stk_pixel_scale *pixels;         /* of unpack_pixels; NULL: none */
    const stk_device_caps *caps;           /* of the device; NULL: it can do all */
    int fuse_most_inputs, fuse_most_instr; /* limits of one group; 0: 12 and 48 */
    stk_dtype compute;                     /* of autocast: BF16 or F16; F32: nothing is cast */
    bool tf32;                             /* of autocast: products in f32 may be in TF32 */
    bool training;                         /* of inference: frozen batch norms only */
    int64_t n_micro;                       /* micro-batches in a batch; 0, 1: none */
    int64_t strict_rows;                   /* of a micro-batch, where the same bits are wanted for any number of ranks;
                                              0: not. n_micro and n_ranks are powers of two then */
    int n_ranks;                           /* that share the batch; 0, 1: none */
    bool shard_state;                      /* of replicate: each rank updates its part of large parameters (shard.h) */
    int overlap;                           /* calls of ranks that may be under way; 0: each is waited for at once */
    bool narrow_sums;                      /* of replicate: gradients in f32 go from rank to rank in bf16 */
    bool local_steps;                      /* of replicate: each rank updates by its own gradients */
    bool sync_norm;                        /* of replicate: batch norms take the statistics of all ranks' rows */
    const char *recompute;                 /* NULL: none; "auto"; or layers: "layer1,layer2.0" */
    int32_t recompute_most; /* auto: that many values at most, those that free most for their cost first */
    double recompute_share; /* auto: 0, or the share of the step's cost that it may take */
    stk_recompute_report *recompute_report; /* NULL: not wanted */
    stk_loss_scale loss_scale;              /* filled; AUTO counts as NONE */
    bool skip_nonfinite;         /* loss_scale: a step whose gradients are not finite is skipped, whatever the scale */
    const stk_place_mark *place; /* [n_places]; of place */
    int n_places, n_devices;
    bool shared_memory;       /* of settle: kernels of one device reach the memory of the others */
    const volatile int *stop; /* compiling ends once it is not 0; NULL: never. Passes that take long ask now and then */
} stk_pass_options;

/* STK_INTERRUPTED once *stop is not 0. */
stk_status stk_pass_ask_stop(const volatile int *stop);

static inline const stk_device_caps *stk_pass_caps(const stk_pass_options *options)
{
    return options && options->caps ? options->caps : &stk_device_caps_all;
}

typedef stk_status (*stk_pass_fn)(stk_graph *graph, const stk_pass_options *options);

#define STK_PASS_LIST(X)                                                                                               \
    X(unpack_pixels)                                                                                                   \
    X(place)                                                                                                           \
    X(autocast)                                                                                                        \
    X(loss_scale)                                                                                                      \
    X(narrow)                                                                                                          \
    X(inference)                                                                                                       \
    X(fuse_norm_relu)                                                                                                  \
    X(accumulate)                                                                                                      \
    X(replicate)                                                                                                       \
    X(autodiff)                                                                                                        \
    X(simplify)                                                                                                        \
    X(fuse_loss)                                                                                                       \
    X(carry)                                                                                                           \
    X(remask)                                                                                                          \
    X(recompute)                                                                                                       \
    X(decompose)                                                                                                       \
    X(fuse_residual)                                                                                                   \
    X(fuse_epilogue)                                                                                                   \
    X(fuse)                                                                                                            \
    X(postpone)                                                                                                        \
    X(overlap)                                                                                                         \
    X(settle)

#define X(name) stk_status pass_##name(stk_graph *graph, const stk_pass_options *options);
STK_PASS_LIST(X)
#undef X

/* replace[v] = v for every value, room for n_more further values. Returned: free(). NULL when out of memory. */
int32_t *stk_pass_identity(const stk_graph *graph, int32_t n_more);
/* How often each value is used, roots counted. Returned: free(). NULL when out of memory. */
int32_t *stk_pass_count_uses(const stk_graph *graph);
/* A pass that adds no nodes: visit is called for each node in turn and sets replace[v] where another value is to stand
 * for v; then the graph is rewritten. n_uses: as stk_pass_count_uses, of the graph before. */
typedef stk_status (*stk_pass_visit)(stk_graph *graph, const stk_node *node, const int32_t *n_uses, int32_t *replace);
stk_status stk_pass_each_node(stk_graph *graph, stk_pass_visit visit);
/* The vector of f32 (f64) numbers that `value` is a broadcast of along its last axis, before they were rounded; or -1.
 */
int32_t stk_pass_find_bias(const stk_graph *graph, int32_t value);

#endif

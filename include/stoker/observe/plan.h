/* What a training step needs, known before the run: memory by purpose and by layer, arithmetic, expected time.
 *
 * Nothing is trained and no memory of the step's size is taken. Figures of the arena are those of the moment at which
 * most is alive. Threads: one at a time for each run.
 */
#ifndef STOKER_OBSERVE_PLAN_H
#define STOKER_OBSERVE_PLAN_H

#include "stoker/train/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_layer_bytes {
    char name[64]; /* "layer1.0" */
    size_t bytes;  /* of activations kept for the backward pass */
} stk_layer_bytes;

typedef struct stk_memory_plan {
    stk_dtype compute;                   /* what products are computed in: F32, BF16, F16 */
    bool tf32;                           /* those in F32 round what they multiply to TF32 */
    int64_t batch, micro_batch, n_micro; /* samples of a step; of a part of it; parts */
    int n_replicas;                      /* that share a batch; the plan, and batch, are of one of them */
    int n_sums;                          /* how often they meet in a step */
    size_t sum_bytes;                    /* that each gives to that */
    int64_t n_trainable, n_frozen;       /* numbers; frozen: running statistics too */
    size_t trainable_bytes, frozen_bytes, optimizer_bytes;
    size_t packed_bytes;                  /* weights in 16 bits, in the order that kernels want */
    size_t spread_bytes;                  /* gaps in a small arena, besides the peak, where there is room */
    size_t activation_bytes;              /* forward values */
    size_t backward_bytes;                /* gradients of activations, and what was recomputed */
    size_t gradient_bytes;                /* of parameters */
    size_t workspace_bytes;               /* of kernels */
    size_t unused_bytes;                  /* gaps */
    size_t arena_bytes;                   /* the five from activation_bytes on */
    size_t lower_bound_bytes;             /* most bytes alive at once; arena_bytes is as much or more */
    size_t peak_bytes;                    /* arena, variables and packed weights */
    size_t program_bytes;                 /* besides: of large graphs, of kernels in many micro-batches, of libraries */
    size_t pipeline_bytes;                /* besides: of the input pipeline, as much as the limit leaves to it */
    size_t checkpoint_copy_bytes;         /* besides, to save while steps go on; 0: saved from the variables */
    int64_t n_kept, n_recomputed;         /* activations that the backward pass reads; those recomputed for it */
    double flops, bytes, recompute_flops; /* of a step: operations, memory traffic at least; what is recomputed */
    int n_groups;                         /* of fused element-wise ops */
    double slowdown;                      /* of fitting into the limit, by a rough model; 1: none */
    int64_t n_fewest;       /* parts that fit, if a step takes longer; 0: no limit, or nothing to choose */
    double fewest_slowdown; /* with those */
    double expected_s;      /* of a step; 0 where no speed was given */
    bool is_compiled;       /* the device compiles steps as a whole, and expected_s is of their ops one by one */
    stk_layer_bytes *layer; /* owned: stk_memory_plan_free */
    int n_layers;
} stk_memory_plan;
STK_API void stk_memory_plan_free(stk_memory_plan *plan);

typedef struct stk_device_speed {
    double flops_per_s, bytes_per_s; /* of a matrix product in the run's precision; read and written together */
} stk_device_speed;
/* Measures the run's device for about a second. */
STK_API stk_status stk_run_measure(stk_run *run, stk_device_speed *out);

typedef struct stk_plan_request {
    int64_t batch;                 /* 0: the recipe's */
    const char *precision;         /* "f32", "bf16", "f16"; NULL: the recipe's */
    bool unlimited;                /* takes no account of the recipe's memory */
    bool dump;                     /* the graph after stk_run_options.dump_graph goes to their dump */
    const stk_device_speed *speed; /* NULL: no expected time */
} stk_plan_request;
/* STK_NO_MEMORY: it does not fit into the recipe's memory; the text names the largest buffers. */
STK_API stk_status stk_run_plan(stk_run *run, const stk_plan_request *request, stk_memory_plan *out);

/* --- for chips that are not here: "tpu:v5e:2x2" --- */

enum { STK_PADDED_LAYERS = 3 };
typedef struct stk_padded_layer {
    char name[64]; /* "fc"; "": none */
    double lost_flops;
} stk_padded_layer;

/* What the compiler makes of a training step, on each chip, and what in it is slow on one. */
typedef struct stk_compiled_plan {
    char chip[64];                  /* "TPU v5 lite" */
    const char *precision;          /* "bf16"; a constant */
    int n_chips;                    /* that share a batch: the replicas */
    int64_t batch;                  /* samples of a chip's step */
    int64_t memory_bytes;           /* of a chip; 0: not known */
    int64_t argument_bytes;         /* parameters, the optimiser's state, the batch */
    int64_t result_bytes;           /* results that take no argument's memory */
    int64_t scratch_bytes;          /* what lies in between */
    int64_t code_bytes;             /* the program itself */
    int64_t fed_bytes;              /* that the host gives to a step of a chip */
    double flops, bytes;            /* of a step, as the compiler counts them; 0: not told */
    double arithmetic_s, traffic_s; /* what those take at least, by the maker's figures; 0: not known */
    int64_t compile_ns;
    int64_t n_products, n_f32_products, n_gathers, n_scatters;
    double product_flops, f32_flops;            /* of all products, and of those in f32 */
    double padded_flops;                        /* with rows filled up to 8, and columns and sums to 128: roughly */
    stk_padded_layer padded[STK_PADDED_LAYERS]; /* those that lose most */
} stk_compiled_plan;
/* Whether the run's device is not here, so that its step can be compiled and not run. */
STK_API stk_status stk_run_is_ahead(stk_run *run, bool *out);
/* Compiles the step, which may take minutes, also for a device that is here. STK_UNSUPPORTED: it compiles no steps as a
 * whole. STK_NO_MEMORY: the compiler found no room, whose text it is then, or it is more than the limit. */
STK_API stk_status stk_run_plan_compiled(stk_run *run, const stk_plan_request *request, stk_compiled_plan *out);

#ifdef __cplusplus
}
#endif
#endif

/* The engine: compiles graphs for its devices and runs them. No data sets here, no files.
 *
 *   engine     devices, variables (kept between runs, shared by name), one arena on each device for all programs
 *   program    a flat list of kernels with their pointers set; made by the passes and the plan
 *
 * Programs of one engine run one at a time and share the arena, since nothing in it outlives a run but the outputs.
 * A run allocates nothing in our code. Threads: one at a time for each engine.
 *
 * On a device on the host a run is done when it returns, and inputs and outputs are used where they lie; outputs must
 * be read before the next run of any program. On others a run is only enqueued: what goes in is copied, what comes out
 * is kept for the last STK_RUNS_KEPT runs, and the caller decides how many runs it stays ahead of what it has read.
 * Code that waits where it says "waits" is right for both.
 *
 * Of several devices the first one takes the inputs and gives the outputs; what "the device" is in this file is that
 * one. Which nodes the others have is an option of compiling (passes/place.c).
 */
#ifndef STK_ENGINE_ENGINE_H
#define STK_ENGINE_ENGINE_H

#include "comm/comm.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/place.h"
#include "stoker/train/optim.h"

typedef struct stk_engine stk_engine;
typedef struct stk_program stk_program;

/* seed: of the variables' first content. */
stk_status stk_engine_open(const char *device, const stk_device_config *config, uint64_t seed, stk_engine **out);
/* On n devices, 1 to STK_MOST_DEVICES, of any kinds; config: [n], or NULL. A kind that is named twice under one number
 * is opened twice. */
stk_status stk_engine_open_many(const char *const *device, const stk_device_config *config, int n, uint64_t seed,
                                stk_engine **out);
int stk_engine_n_devices(const stk_engine *engine);
/* Frees its programs too. Accepts NULL. */
void stk_engine_close(stk_engine *engine);
const stk_device *stk_engine_device(const stk_engine *engine);

/* What a program may take, in bytes, on a device that compiles it as a whole, by its compiler's own account; more is
 * STK_NO_MEMORY where it is compiled. 0: any. */
void stk_engine_limit_compiled(stk_engine *engine, size_t bytes);
/* Whether kernels of the programs that are compiled from now on may be chosen by timing (device.h). */
void stk_engine_measure(stk_engine *engine, stk_measuring measuring);
/* What was chosen so, as text, for a run that goes on: appended, or nothing. And taking it: STK_MISMATCH or STK_CORRUPT
 * say why it cannot be. */
void stk_engine_print_choices(const stk_engine *engine, stk_text *out);
stk_status stk_engine_take_choices(stk_engine *engine, const char *text);

/* By the model, which counts a byte as 6 operations. ResNet-50's step takes about 1.2 % longer with it. */
#define STK_CHEAP_SHARE 0.014

typedef struct stk_compile_options {
    bool inference; /* run pass_inference */
    bool no_fuse;
    stk_dtype compute;         /* F32; BF16 or F16: by pass autocast */
    bool tf32;                 /* products in F32 may be in TF32, by the same pass */
    stk_loss_scale loss_scale; /* filled; AUTO counts as NONE */
    bool skip_nonfinite; /* a step whose gradients are not finite is skipped; a dynamic loss scale does so always */
    /* For arena, variables, packed weights and what the program itself takes (program_bytes); 0: none. STK_NO_MEMORY
     * names the largest buffers. */
    size_t memory_limit_bytes;
    size_t reserved_bytes; /* of the limit: what others take of it, such as the input pipeline */
    /* Of several devices: each one's, for its arena and variables; 0: none. */
    size_t device_limit_bytes[STK_MOST_DEVICES];
    const stk_place_mark *place; /* [n_places], borrowed during the call: layers that are not on device 0 */
    int n_places;
    /* The graph is of `micro` rows, and a run takes `batch` rows in slices: inputs with dimensions are bound to the
     * whole batch along their first one. batch 0: no micro-batches. See passes/accumulate.c. */
    int64_t batch, micro;
    bool plan_only;         /* makes no variables and takes no memory: the program can be asked, but not run */
    const char *recompute;  /* NULL: none; "auto"; or layers, as pass_recompute has them */
    int recompute_most;     /* auto: that many values at most */
    double recompute_share; /* auto: 0, or the share of the step's cost that it may take, by a rough model */
    /* Chooses for a training step: what is cheap to recompute, STK_CHEAP_SHARE of the step, and where that does not
     * bring it within memory_limit_bytes, as few more values as do. */
    bool fit;
    /* Weights in 16 bits stay in the order that kernels want (packed.h) instead of being cast and packed in each run,
     * where memory_limit_bytes has room and, if another program of the engine has done so before, where it has them. */
    bool keep_packed;
    /* Ranks that share the batch: what is summed up over it is summed up over them, too (passes/replicate.c), and all
     * of them compile and run this program. Borrowed for the program's life; NULL: there is one. */
    stk_comm *comm;
    const volatile int *stop; /* compiling ends with STK_INTERRUPTED once it is not 0; NULL: never */
    bool shard_state;         /* with ranks: each has the optimiser's state of a part of each large parameter */
    bool overlap;             /* with ranks: gradients are added up while the backward pass goes on */
    bool narrow_sums;         /* with ranks: gradients in f32 go from rank to rank in bf16, each sum rounded once */
    bool local_steps;         /* with ranks: each updates by the gradients of its own share */
    bool sync_norm;           /* with ranks: batch norms take their statistics from the rows of all */
    bool strict;              /* sums over micro-batches and ranks, powers of two, are one tree: passes/accumulate.c */
    /* A pass's name, "all" or NULL. A pass that the other options leave out is STK_NOT_FOUND, with why. */
    const stk_pixel_scale *pixels; /* an input that comes as u8 (passes.h), borrowed for the call; NULL: none */
    const char *dump_after;
    void (*dump)(void *user, const char *pass, const char *text);
    void *dump_user;
} stk_compile_options;

/* Takes graph, also on failure. The program belongs to the engine. options may be NULL. */
stk_status stk_engine_compile(stk_engine *engine, stk_graph *graph, const stk_compile_options *options,
                              stk_program **out);
/* The same for prediction in f32: the graph has neither gradients nor updates. Links no pass that training needs. */
stk_status stk_engine_compile_forward(stk_engine *engine, stk_graph *graph, stk_program **out);

/* STK_NOT_FOUND, with a list of them, where no pass has that name and it is not "all": what dump_after takes. */
stk_status stk_engine_check_pass(const char *name);
/* Whether there is such a device, without opening it: before much else is done for a run on it. */
stk_status stk_engine_check_device(const char *name);

/* Frees one program before its engine. Accepts NULL. */
void stk_engine_discard(stk_engine *engine, stk_program *program);

typedef struct stk_variable_view {
    const char *name;     /* borrowed */
    stk_tensor_view view; /* borrowed; may be written between runs, see stk_engine_changed. data is NULL where the
                             device is not on the host */
    bool trainable;
    int n_parts;     /* above 0: view is this rank's part, of n_parts of equal length (ops/rank_parts.h), */
    stk_shape whole; /* and this the shape of all of it */
} stk_variable_view;
/* Variable number i in the order of creation. */
int stk_engine_n_variables(const stk_engine *engine);
stk_variable_view stk_engine_variable(const stk_engine *engine, int i);
/* Copies variable i to or from the host's memory, behind all runs so far, and waits. */
stk_status stk_engine_read_variable(stk_engine *engine, int i, void *dst);
stk_status stk_engine_write_variable(stk_engine *engine, int i, const void *src);
/* To be called after content was written through views. */
void stk_engine_changed(stk_engine *engine);
/* Waits for everything; the first failure of any work that was enqueued. */
stk_status stk_engine_finish(stk_engine *engine);

/* Number of the input of that name, or -1. */
int stk_program_input(const stk_program *program, const char *name);
stk_tensor_desc stk_program_input_desc(const stk_program *program, int i_input);
/* The memory for input i in the next runs, borrowed: 64-byte alignment is best. After a run it must stay as it is until
 * stk_program_wait_inputs has returned. */
void stk_program_bind(stk_program *program, int i_input, const void *data);
/* The value of input i in the next runs, copied at once: for a learning rate, a step number, a few weights. At most
 * STK_MOST_SET_BYTES; a longer input is STK_INVALID. Does nothing for i_input -1. */
enum { STK_MOST_SET_BYTES = 1 << 16 };
stk_status stk_program_set(stk_program *program, int i_input, const void *value);
/* Builds the kernels of the next runs now, where the device is not on the host; else the first run does. */
stk_status stk_program_prepare(stk_program *program);
/* Enqueues a run; on the host it is done then. Every input must be bound or set. Waits only where two runs back has not
 * begun to compute. */
stk_status stk_program_run(stk_program *program);
/* Whether the last run failed half-way, with some variables written and others not. */
bool stk_program_is_torn(const stk_program *program);
/* Waits until the last run's bound inputs have been read and may be written or freed. */
stk_status stk_program_wait_inputs(stk_program *program);
/* The part of that wait which is for the device, and not for copies: until the earlier run is done whose memory the
 * last run's inputs are copied to. Before stk_program_wait_inputs, for those who measure. */
stk_status stk_program_wait_earlier(stk_program *program);
/* Waits until the run that is n_back before the last is done (0: the last) and shows its outputs; n_back is below
 * STK_RUNS_KEPT, and 0 on the host. */
enum { STK_RUNS_KEPT = 4 };
stk_status stk_program_wait(stk_program *program, int n_back);
/* How many runs the host does well to stay ahead of what it reads: 0 on the host. */
int stk_engine_runs_ahead(const stk_engine *engine);
/* The output of that name of the run last waited for (on the host: of the last run), in the host's memory; NULL when
 * there is none. Borrowed until the next run; not on the host, until STK_RUNS_KEPT - 1 more runs. */
/* What ranks do together in a run: how often they meet, and bytes that each gives to it. */
typedef struct stk_rank_calls {
    int n_calls;
    size_t bytes;
} stk_rank_calls;
stk_rank_calls stk_program_rank_calls(const stk_program *program);
const void *stk_program_output(const stk_program *program, const char *name, stk_tensor_desc *desc);

/* Up to here a program itself is part of what any process takes. */
#define STK_UNCOUNTED_PROGRAM_BYTES ((size_t)2 << 20)

typedef struct stk_program_info {
    size_t arena_bytes, lower_bound_bytes; /* planned, of all devices */
    size_t device_bytes[STK_MOST_DEVICES]; /* of each one's arena */
    size_t used_bytes;                     /* the highest byte that some kernel was given, as set up for running */
    size_t variable_bytes;                 /* of the whole engine; plan_only: of this program */
    size_t packed_bytes;                   /* of weights kept packed */
    /* Of the engine's programs themselves, beyond STK_UNCOUNTED_PROGRAM_BYTES: graphs, kernels, lists of kernels, which
     * are long where there are many micro-batches; and of libraries that kernels use. */
    size_t program_bytes;
    size_t spread_bytes; /* gaps besides, in a small arena (passes/plan.h) */
    int n_entries, n_micro;
    int n_segments;           /* several devices: launches in a run; else 0 */
    double flops, bytes;      /* of one run */
    int n_kept, n_recomputed; /* values of the forward pass that the backward pass reads; those recomputed for it */
    double recompute_flops;   /* what that takes, part of flops */
} stk_program_info;
stk_program_info stk_program_get_info(const stk_program *program);
/* Of what the program's ranks do together, in its order, and of seed: the same for all, or they cannot go on. */
uint64_t stk_program_ranks_hash(const stk_program *program, uint64_t seed);
/* One entry a line: op, implementation, shapes, GFLOP. */
void stk_program_print(const stk_program *program, stk_text *out);

/* With profiling on, each run adds every entry's time (engine/profile.h). */
void stk_program_profile(stk_program *program, bool on);

#endif

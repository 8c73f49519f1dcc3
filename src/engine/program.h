/* The inside of engine and program, shared by engine.c, compile.c and program.c. */
#ifndef STK_ENGINE_PROGRAM_H
#define STK_ENGINE_PROGRAM_H

#include "device/queue.h"
#include "engine/dispatch.h"
#include "engine/engine.h"
#include "engine/packed.h"
#include "engine/transfer.h"
#include "engine/variables.h"
#include "passes/passes.h"
#include "passes/plan.h"

typedef struct stk_home {
    stk_device *device;
    stk_queue *in, *compute, *out; /* copies to the device, runs, copies to the host */
    void *arena;
    size_t arena_bytes;
} stk_home;

struct stk_engine {
    stk_device *device;            /* the first one, */
    stk_queue *in, *compute, *out; /* and its queues */
    stk_home on[STK_MOST_DEVICES];
    int n_devices;
    stk_variables variables;
    stk_packed_copies packed;
    uint64_t arena_version; /* grows when an arena moves: programs then set their pointers again */
    stk_program *programs;  /* a list */
};

typedef struct stk_program_entry_info {
    /* Of the graph. Below 0 copy number -1 - node, at the end of the body or of the run, and behind the copies, which
     * have the first numbers, kept weights. */
    int32_t node;
    int32_t i_micro; /* of the slice that it reads; 0 outside of the body */
    int64_t time_ns; /* profiling */
} stk_program_entry_info;

/* A batch in slices. */
typedef struct stk_micro {
    int64_t n, batch, rows; /* n: how many slices, 1: the whole; rows: of a slice */
    int64_t *row;           /* [n]: where each begins, for STK_MICRO_ROW */
    float *fresh;           /* [n][rows]: for STK_MICRO_FRESH */
} stk_micro;

struct stk_program {
    stk_engine *engine;
    stk_program *next;
    stk_graph *graph;
    stk_plan plan;
    stk_kernel *kernel;      /* by node */
    stk_kernel *copy_kernel; /* by copy */
    int32_t *variable;       /* by value id of a variable's leaf: its number in the engine */
    stk_entry *entry;        /* [n_sides][n_entries]; NULL where it was only planned, as info and pointers */
    stk_program_entry_info *info;
    int n_entries;     /* of one side */
    size_t n_pointers; /* of one side's entries */
    void **pointers;   /* of all entries */
    stk_capture *capture[STK_N_SIDES];
    int n_sides;        /* 1 on the host */
    const void **input; /* by value id of an input's leaf: what is bound */
    stk_io_block inputs;
    char *values; /* what stk_program_set was given: the first values_bytes of the inputs' block */
    size_t values_bytes;
    stk_transfer *transfer; /* NULL on the host */
    stk_dispatch *dispatch; /* of several devices; NULL for one */
    stk_parts parts;
    stk_micro micro;
    bool plan_only;
    bool updates; /* it writes variables */
    bool is_torn; /* the last run failed when it had written some of them */
    stk_packed packed;
    stk_recompute_report recomputed;
    bool dirty;    /* pointers must be set again */
    bool is_bound; /* every input is, or was when it was last looked at */
    uint64_t arena_version;
    bool profiling, tracing;
    int64_t n_profiled, kernels_ns; /* runs; how long they were in kernels */
    struct stk_trace_kernel *about; /* by entry, made when first asked for: engine/profile.h */
};

/* Makes the device's arena at least that large. */
stk_status stk_engine_reserve(stk_engine *engine, int i_device, size_t bytes);
/* Where a value lies. */
static inline const stk_home *stk_program_home(const stk_program *program, int32_t value)
{
    return &program->engine->on[program->graph->value[value].device];
}
/* Compiles by those passes, which a NULL name ends, without looking for what fits, see fit.c. Takes graph. */
typedef struct stk_named_pass {
    const char *name;
    stk_pass_fn run;
} stk_named_pass;
stk_status stk_engine_compile_by(const stk_named_pass *passes, stk_engine *engine, stk_graph *graph,
                                 const stk_compile_options *options, stk_program **out);
/* The limit without what others take of it, at least 1; 0: none. */
static inline size_t stk_compile_limit(const stk_compile_options *options)
{
    size_t limit = options->memory_limit_bytes, reserved = options->reserved_bytes;
    return !limit ? 0 : limit > reserved ? limit - reserved : 1;
}
/* --- ranks.c --- */
/* The kernel of an op that stk_op_is_of_ranks, whatever the device: comm does it. comm NULL: STK_INVALID. */
stk_status stk_ranks_kernel(const stk_device *device, stk_comm *comm, const stk_op_call *call, stk_kernel *out);
/* --- micro.c --- */
/* STK_INVALID where the slices make no sense. */
stk_status stk_micro_make(int64_t batch, int64_t rows, stk_micro *out);
void stk_micro_free(stk_micro *micro);
/* Binds the inputs that the program sets itself. */
void stk_micro_bind(stk_program *program);
/* Bytes of what is bound to an input: of the whole batch. */
size_t stk_program_input_bytes(const stk_program *program, int32_t value);
/* Where slice i_micro begins in what is bound to the input. */
size_t stk_micro_offset(const stk_program *program, int32_t value, int32_t i_micro);

/* Whether the node stands in the body, and runs with the last micro-batch only. */
static inline bool stk_program_is_late(const stk_program *program, int32_t node)
{
    return program->parts.late && program->parts.late[node];
}

/* How often a run has the node's kernel: once for each micro-batch in the body, never where it is only a name. */
static inline int64_t stk_program_times(const stk_program *program, int32_t node)
{
    const stk_parts *parts = &program->parts;
    bool in_body = node >= parts->n_begin && node < parts->n_begin + parts->n_body;
    return program->plan.skipped[node] ? 0 : in_body && !stk_program_is_late(program, node) ? program->micro.n : 1;
}
/* stk_program_info.program_bytes. */
size_t stk_program_own_bytes(const stk_program *program);
/* Of the variables that its graph has. */
size_t stk_program_variable_bytes(const stk_program *program);
size_t stk_program_variable_bytes_on(const stk_program *program, int i_device);
/* Where a value lies for runs with that side of the inputs, in device memory. */
void *stk_program_locate(const stk_program *program, int32_t value, int i_side);
/* Nothing of the engine's is under way. */
void stk_program_free(stk_program *program);

#endif

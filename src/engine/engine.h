/* The engine: compiles graphs for one device and runs them. No data sets here, no files.
 *
 *   engine     device, variables (kept between runs, shared by name), one arena for all programs
 *   program    a flat list of kernels with their pointers set; made by the passes and the plan
 *
 * Programs of one engine run one at a time and share the arena, since nothing in it outlives a run but the outputs,
 * which must be read before the next run of any program. A run allocates nothing in our code. Threads: one at a time
 * for each engine.
 */
#ifndef STK_ENGINE_ENGINE_H
#define STK_ENGINE_ENGINE_H

#include "device/device.h"
#include "graph/graph.h"

typedef struct stk_engine stk_engine;
typedef struct stk_program stk_program;

/* seed: of the variables' first content. */
stk_status stk_engine_open(const char *device, const stk_device_config *config, uint64_t seed, stk_engine **out);
/* Frees its programs too. Accepts NULL. */
void stk_engine_close(stk_engine *engine);
const stk_device *stk_engine_device(const stk_engine *engine);

typedef struct stk_compile_options {
    bool inference; /* run pass_inference */
    bool no_fuse;
    stk_dtype compute;         /* F32; BF16 or F16: by pass autocast */
    size_t memory_limit_bytes; /* for arena and variables together; 0: none. STK_NO_MEMORY names the largest buffers */
    bool plan_only;            /* makes no variables and takes no memory: the program can be asked, but not run */
    const char *dump_after;    /* a pass's name, "all" or NULL */
    void (*dump)(void *user, const char *pass, const char *text);
    void *dump_user;
} stk_compile_options;

/* Takes graph, also on failure. The program belongs to the engine. options may be NULL. */
stk_status stk_engine_compile(stk_engine *engine, stk_graph *graph, const stk_compile_options *options,
                              stk_program **out);

/* Frees one program before its engine. Accepts NULL. */
void stk_engine_discard(stk_engine *engine, stk_program *program);

typedef struct stk_variable_view {
    const char *name;     /* borrowed */
    stk_tensor_view view; /* borrowed; may be written between runs */
    bool trainable;
} stk_variable_view;
/* Variable number i in the order of creation. */
int stk_engine_n_variables(const stk_engine *engine);
stk_variable_view stk_engine_variable(const stk_engine *engine, int i);

/* Number of the input of that name, or -1. */
int stk_program_input(const stk_program *program, const char *name);
stk_tensor_desc stk_program_input_desc(const stk_program *program, int i_input);
/* The memory for input i in the next runs, borrowed: 64-byte alignment is best. */
void stk_program_bind(stk_program *program, int i_input, const void *data);
/* Where the output of that name lies after a run, NULL when there is none. Borrowed until the next run. */
const void *stk_program_output(const stk_program *program, const char *name, stk_tensor_desc *desc);
/* Every input must be bound. */
stk_status stk_program_run(stk_program *program);

typedef struct stk_program_info {
    size_t arena_bytes, lower_bound_bytes; /* planned */
    size_t used_bytes;                     /* the highest byte that some kernel was given, as set up for running */
    size_t variable_bytes;                 /* of the whole engine; plan_only: of this program */
    int n_entries;
    double flops, bytes; /* of one run */
} stk_program_info;
stk_program_info stk_program_get_info(const stk_program *program);
/* One entry a line: op, implementation, shapes, GFLOP. */
void stk_program_print(const stk_program *program, stk_text *out);

/* With profiling on, each run adds every entry's time; printed by op, most time first. */
void stk_program_profile(stk_program *program, bool on);
void stk_program_print_profile(const stk_program *program, stk_text *out);

#endif

/* What a program's entries are, and where its profiled runs spent their time. Profiling launches entry by entry and
 * reads the clock twice for each, which costs well under a microsecond; results are the same bits.
 */
#ifndef STK_ENGINE_PROFILE_H
#define STK_ENGINE_PROFILE_H

#include "engine/engine.h"
#include "trace/trace.h"

/* about[n_entries], made once; borrowed from the program. */
stk_status stk_program_get_about(stk_program *program, const stk_trace_kernel **about, int *n);
/* Of all profiled runs together. */
int64_t stk_program_entry_ns(const stk_program *program, int i_entry);
int64_t stk_program_kernels_ns(const stk_program *program); /* of all entries */
int64_t stk_program_ranks_ns(const stk_program *program);   /* of those that sum over ranks */
int64_t stk_program_n_profiled(const stk_program *program);
/* Runs are profiled, and each entry goes into the trace. Wants stk_program_get_about before. */
void stk_program_trace(stk_program *program, bool on);

/* A stretch of the arena over a stretch of the entries' time, for drawing it. */
typedef struct stk_arena_use {
    size_t offset, bytes;
    int32_t first, last; /* nodes of the program's graph, both included */
    const char *what;    /* "activation", "gradient", "backward", "workspace": a constant */
    const char *layer;   /* borrowed from the program's about; "": none */
} stk_arena_use;
/* Fills use[n_most] with the largest buffers; returns how many. *n_nodes: how long the time is. */
int stk_program_get_arena(stk_program *program, stk_arena_use *use, int n_most, int32_t *n_nodes);

#endif

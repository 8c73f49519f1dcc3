/* Compiling within a limit: what is cheap is recomputed instead of being kept, and then as few values more as possible,
 * found by planning clones of the graph. More values recomputed never need more memory but for rounding, so that
 * halving finds the number.
 */
#include <limits.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/program.h"

static const stk_named_pass all_passes[] = {
#define X(name) {#name, pass_##name},
    STK_PASS_LIST(X){NULL, NULL},
#undef X
};

/* Plans a clone of graph; *fits: within the limit. */
static stk_status plan_clone(stk_engine *engine, const stk_graph *graph, stk_compile_options options, int most,
                             double share, bool *fits, int *n_recomputed)
{
    stk_program *program;
    size_t limit = stk_compile_limit(&options);
    options.memory_limit_bytes = 0;
    options.plan_only = true;
    options.keep_packed = false;
    options.dump_after = NULL;
    options.recompute_most = most;
    options.recompute_share = share;
    STK_RETURN_IF_ERROR(stk_engine_compile_by(all_passes, engine, stk_graph_clone(graph, STK_ANY), &options, &program));
    stk_program_info info = stk_program_get_info(program);
    *fits = info.arena_bytes + info.variable_bytes + info.program_bytes <= limit;
    *n_recomputed = info.n_recomputed;
    stk_engine_discard(engine, program);
    return STK_OK;
}

/* What is cheap where that fits, else the least number of values to be recomputed with which the plan fits; all that
 * help where none does. */
static stk_status choose(stk_engine *engine, const stk_graph *graph, stk_compile_options *options)
{
    bool fits = true;
    int low = 0, high, n;
    options->recompute = "auto";
    options->recompute_most = INT_MAX;
    options->recompute_share = STK_CHEAP_SHARE;
    if (options->memory_limit_bytes)
        STK_RETURN_IF_ERROR(plan_clone(engine, graph, *options, INT_MAX, STK_CHEAP_SHARE, &fits, &n));
    if (fits) return STK_OK;
    options->recompute_share = 0;
    STK_RETURN_IF_ERROR(plan_clone(engine, graph, *options, INT_MAX, 0, &fits, &high));
    while (fits && high - low > 1) {
        int middle = low + (high - low) / 2;
        bool fits_here;
        STK_RETURN_IF_ERROR(plan_clone(engine, graph, *options, middle, 0, &fits_here, &n));
        *(fits_here ? &high : &low) = middle;
    }
    options->recompute_most = high;
    return STK_OK;
}

stk_status stk_engine_compile(stk_engine *engine, stk_graph *graph, const stk_compile_options *options,
                              stk_program **out)
{
    static const stk_compile_options defaults;
    stk_compile_options chosen = options ? *options : defaults;
    if (chosen.fit && !chosen.inference) {
        stk_status status = choose(engine, graph, &chosen);
        if (status != STK_OK) {
            stk_graph_free(graph);
            return status;
        }
    }
    stk_status status = stk_engine_compile_by(all_passes, engine, graph, &chosen, out);
    /* Graphs and kernels of what was tried on the way are not to count for the rest of the run. */
    if (!chosen.plan_only) stk_memory_give_back();
    return status;
}

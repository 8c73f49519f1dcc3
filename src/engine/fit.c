/* Compiling within a limit: as few values as possible are made again instead of being kept, found by planning clones of
 * the graph. More values made again never need more memory but for rounding, so that halving finds the number.
 */
#include <limits.h>

#include "base/error.h"
#include "engine/program.h"

/* Plans a clone of graph; *fits: within the limit. */
static stk_status plan_clone(stk_engine *engine, const stk_graph *graph, stk_compile_options options, int most,
                             bool *fits, int *n_recomputed)
{
    stk_program *program;
    size_t limit = options.memory_limit_bytes;
    options.memory_limit_bytes = 0;
    options.plan_only = true;
    options.dump_after = NULL;
    options.recompute_most = most;
    STK_RETURN_IF_ERROR(stk_engine_compile_as_is(engine, stk_graph_clone(graph, STK_ANY), &options, &program));
    stk_program_info info = stk_program_get_info(program);
    *fits = info.arena_bytes + info.variable_bytes <= limit;
    *n_recomputed = info.n_recomputed;
    stk_engine_discard(engine, program);
    return STK_OK;
}

/* The least number of values to be made again with which the plan fits; all that help where none does. */
static stk_status find_number(stk_engine *engine, const stk_graph *graph, const stk_compile_options *options, int *out)
{
    bool fits;
    int low = 0, high, n;
    *out = 0;
    STK_RETURN_IF_ERROR(plan_clone(engine, graph, *options, 0, &fits, &n));
    if (fits) return STK_OK;
    STK_RETURN_IF_ERROR(plan_clone(engine, graph, *options, INT_MAX, &fits, &high));
    while (fits && high - low > 1) {
        int middle = low + (high - low) / 2;
        bool fits_here;
        STK_RETURN_IF_ERROR(plan_clone(engine, graph, *options, middle, &fits_here, &n));
        *(fits_here ? &high : &low) = middle;
    }
    *out = high;
    return STK_OK;
}

stk_status stk_engine_compile(stk_engine *engine, stk_graph *graph, const stk_compile_options *options,
                              stk_program **out)
{
    static const stk_compile_options defaults;
    stk_compile_options chosen = options ? *options : defaults;
    if (chosen.fit && chosen.memory_limit_bytes && !chosen.inference) {
        chosen.recompute = "auto";
        stk_status status = find_number(engine, graph, &chosen, &chosen.recompute_most);
        if (status != STK_OK) {
            stk_graph_free(graph);
            return status;
        }
    }
    return stk_engine_compile_as_is(engine, graph, &chosen, out);
}

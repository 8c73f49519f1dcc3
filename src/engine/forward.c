/* Compiling a graph that is only run forward, in f32. A file of its own, so that a program which only predicts links no
 * autodiff and nothing of what training alone needs. */
#include "engine/program.h"

static const stk_named_pass forward_passes[] = {{"inference", pass_inference},
                                                {"fuse_norm_relu", pass_fuse_norm_relu},
                                                {"simplify", pass_simplify},
                                                {"decompose", pass_decompose},
                                                {"fuse_epilogue", pass_fuse_epilogue},
                                                {"fuse", pass_fuse},
                                                {NULL, NULL}};

stk_status stk_engine_compile_forward(stk_engine *engine, stk_graph *graph, stk_program **out)
{
    stk_compile_options options = {.inference = true};
    return stk_engine_compile_by(forward_passes, engine, graph, &options, out);
}

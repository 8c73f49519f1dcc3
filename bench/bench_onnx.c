/* What an ONNX model gives here, for comparison with other systems (tools/exchange.py).
 *
 *     bench_onnx MODEL.onnx IN.safetensors OUT.safetensors [NAME=SIZE]...
 *
 * IN holds the model's inputs by their names, converted to the types that it wants; NAME=SIZE gives a size to a
 * dimension that the model leaves open. OUT gets all outputs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "stoker/files/onnx.h"
#include "stoker/files/safetensors.h"
#include "tensor/shape.h"

enum { MOST_SIZES = 8, MOST_OUTPUTS = 64 };

static stk_status load_weights(stk_engine *engine, const stk_onnx *model)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++)
        for (int k = 0; k < stk_onnx_n_weights(model); k++)
            if (!strcmp(stk_onnx_weight(model, k).name, stk_engine_variable(engine, i).name))
                STK_RETURN_IF_ERROR(stk_engine_write_variable(engine, i, stk_onnx_weight(model, k).data));
    return STK_OK;
}

static stk_status bind_inputs(stk_program *program, const stk_graph *graph, const stk_safetensors_file *in,
                              stk_arena *arena)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        stk_safetensor t;
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        if (graph->node[i].op != STK_OP_input) continue;
        int input = stk_program_input(program, graph->node[i].name);
        if (input < 0) continue;
        STK_RETURN_IF_ERROR(stk_safetensors_get(in, graph->node[i].name, &t));
        stk_tensor_desc want = stk_program_input_desc(program, input);
        if (!stk_shape_equal(t.shape, want.shape))
            return stk_fail(STK_MISMATCH, "input '%s' is %s, the model wants %s", t.name, stk_shape_text(t.shape, a),
                            stk_shape_text(want.shape, b));
        void *data = stk_arena_alloc(arena, stk_desc_bytes(want) + 64);
        if (!data) return stk_fail_memory(stk_desc_bytes(want));
        STK_RETURN_IF_ERROR(stk_safetensors_read(&t, want.dtype, NULL, data));
        stk_program_bind(program, input, data);
    }
    return STK_OK;
}

static stk_status write_outputs(stk_program *program, const stk_graph *graph, const char *path)
{
    stk_safetensors_entry_out out[MOST_OUTPUTS];
    int n = 0;
    for (int i = 0; i < graph->n_roots && n < MOST_OUTPUTS; i++) {
        stk_tensor_desc desc;
        const char *name = graph->root[i].name;
        const void *data = stk_program_output(program, name, &desc);
        if (data) out[n++] = (stk_safetensors_entry_out){name, desc.dtype, desc.shape, data, desc.dtype, NULL};
    }
    return stk_safetensors_write(path, out, n, NULL, NULL);
}

static stk_status compute(char **argv, const stk_onnx_options *options)
{
    stk_arena *arena = stk_arena_new();
    stk_safetensors_file *in = NULL;
    stk_onnx *model = NULL;
    stk_engine *engine = NULL;
    stk_program *program;
    stk_status status;
    stk_compile_options how = {.inference = true};
    if (!arena) STK_TRY(stk_fail_memory(1024));
    STK_TRY(stk_onnx_open(argv[1], options, &model));
    STK_TRY(stk_safetensors_open(argv[2], &in));
    /* What stays open is the batch. */
    stk_graph *bound = stk_graph_clone(stk_onnx_graph(model), stk_safetensors_at(in, 0).shape.dim[0]);
    if (!bound) STK_TRY(stk_fail_memory(1024));
    STK_TRY(stk_engine_open("cpu", NULL, 1, &engine));
    STK_TRY(stk_engine_compile(engine, bound, &how, &program));
    STK_TRY(load_weights(engine, model));
    STK_TRY(bind_inputs(program, stk_onnx_graph(model), in, arena));
    STK_TRY(stk_program_run(program));
    STK_TRY(stk_program_wait(program, 0));
    STK_TRY(write_outputs(program, stk_onnx_graph(model), argv[3]));
done:
    stk_engine_close(engine);
    stk_onnx_free(model);
    stk_safetensors_close(in);
    stk_arena_free(arena);
    return status;
}

int main(int argc, char **argv)
{
    stk_onnx_size size[MOST_SIZES];
    stk_onnx_options options = {.size = size};
    for (int i = 4; i < argc && options.n_sizes < MOST_SIZES; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals) continue;
        *equals = 0;
        size[options.n_sizes++] = (stk_onnx_size){argv[i], strtoll(equals + 1, NULL, 10)};
    }
    if (argc < 4) {
        fprintf(stderr, "usage: bench_onnx MODEL.onnx IN.safetensors OUT.safetensors [NAME=SIZE]...\n");
        return 2;
    }
    if (compute(argv, &options) == STK_OK) return 0;
    fprintf(stderr, "bench_onnx: %s\n", stk_error_text());
    return 1;
}

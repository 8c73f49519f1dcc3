/* The logits of a run's network, for comparison with those of other systems (tools/exchange.py).
 *
 *     bench_logits RUN IN.safetensors OUT.safetensors
 *
 * IN holds the network's inputs by their names ("image" f32 [N,H,W,C], "tokens" i32 [N,T]), as many rows as are to be
 * computed at once; OUT gets "logits".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "infer/inference_graph.h"
#include "run/export.h"
#include "run/state.h"

/* The tensor's numbers, until the process ends. */
static stk_status load(const stk_safetensor *t, void **out)
{
    *out = malloc(t->n_bytes + 1);
    return *out ? stk_safetensors_read(t, t->dtype, NULL, *out) : stk_fail_memory(t->n_bytes);
}

static stk_status load_weights(stk_engine *engine, const stk_export_source *source)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++) {
        stk_variable_view v = stk_engine_variable(engine, i);
        stk_safetensor t;
        void *data;
        STK_RETURN_IF_ERROR(stk_safetensors_get(source->weights, v.name, &t));
        STK_RETURN_IF_ERROR(load(&t, &data));
        STK_RETURN_IF_ERROR(stk_engine_write_variable(engine, i, data));
    }
    return STK_OK;
}

static stk_status bind_inputs(stk_program *program, const stk_graph *model, const stk_safetensors_file *in)
{
    for (int i = 0; i < model->n_nodes; i++) {
        stk_safetensor t;
        if (model->node[i].op != STK_OP_input) continue;
        int input = stk_program_input(program, model->node[i].name);
        if (input < 0) continue;
        STK_RETURN_IF_ERROR(stk_safetensors_get(in, model->node[i].name, &t));
        stk_tensor_desc want = stk_program_input_desc(program, input);
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        if (t.dtype != want.dtype || !stk_shape_equal(t.shape, want.shape))
            return stk_fail(STK_MISMATCH, "input '%s' is %s, the network wants %s", t.name,
                            stk_desc_text(stk_desc_make(t.dtype, t.shape), a), stk_desc_text(want, b));
        void *data;
        STK_RETURN_IF_ERROR(load(&t, &data));
        stk_program_bind(program, input, data);
    }
    return STK_OK;
}

static stk_status compute(const stk_export_source *source, const char *in_path, const char *out_path)
{
    stk_safetensors_file *in = NULL;
    stk_engine *engine = NULL;
    stk_graph *graph;
    stk_program *program;
    stk_tensor_desc desc;
    stk_status status;
    stk_compile_options options = {.inference = true};
    stk_device_config device = {.n_threads = 0};
    STK_TRY(stk_safetensors_open(in_path, &in));
    STK_TRY(stk_inference_graph(source->run->model, stk_safetensors_at(in, 0).shape.dim[0], &graph));
    STK_TRY(stk_engine_open("cpu", &device, 0, &engine));
    STK_TRY(stk_engine_compile(engine, graph, &options, &program));
    STK_TRY(load_weights(engine, source));
    STK_TRY(bind_inputs(program, source->graph, in));
    STK_TRY(stk_program_run(program));
    STK_TRY(stk_program_wait(program, 0));
    const void *logits = stk_program_output(program, "logits", &desc);
    stk_safetensors_entry_out out = {"logits", desc.dtype, desc.shape, logits, desc.dtype, NULL};
    STK_TRY(stk_safetensors_write(out_path, &out, 1, NULL, NULL));
done:
    stk_engine_close(engine);
    stk_safetensors_close(in);
    return status;
}

int main(int argc, char **argv)
{
    stk_export_source source;
    if (argc != 4) {
        fprintf(stderr, "usage: bench_logits RUN IN.safetensors OUT.safetensors\n");
        return 2;
    }
    stk_status status = stk_export_open(argv[1], NULL, &source);
    if (status == STK_OK) status = compute(&source, argv[2], argv[3]);
    stk_export_close(&source);
    if (status == STK_OK) return 0;
    fprintf(stderr, "bench_logits: %s\n", stk_error_text());
    return 1;
}

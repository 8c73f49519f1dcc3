/* A random ONNX model of ops that are known here (onnx_grammar.h), read, run node by node on the cpu and the reference
 * device, which must agree, and run as a program (both_devices.h). Bytes of some models are changed at random first. An
 * input that begins as a model does is one: so the seeds of the target onnx, and what mutation makes of them, run, too.
 * With FUZZ_SHOW set graphs are printed.
 *
 * covers: onnx/build.c onnx/build_element.c onnx/build_gather.c onnx/build_layer.c onnx/build_loss.c
 * onnx/build_reduce.c onnx/build_shape.c onnx/build_window.c onnx/evaluate.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/both_devices.h"
#include "fuzz/onnx_grammar.h"
#include "onnx/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const void *weight_of(const void *user, const char *name, stk_tensor_desc desc)
{
    const stk_onnx *model = user;
    (void)desc;
    for (int i = 0; i < stk_onnx_n_weights(model); i++)
        if (!strcmp(stk_onnx_weight(model, i).name, name)) return stk_onnx_weight(model, i).data;
    return NULL;
}

static void read_and_run(stk_span bytes, fuzz_draw *draw)
{
    stk_onnx *model;
    if (stk_onnx_parse(bytes.data, bytes.n, NULL, &model) != STK_OK) return;
    stk_graph *graph = stk_graph_clone(stk_onnx_graph(model), 2);
    if (!graph) abort();
    char *text = getenv("FUZZ_SHOW") ? stk_graph_print(graph) : NULL;
    if (text) fprintf(stderr, "%s\n", text);
    free(text);
    if (stk_graph_status(graph) == STK_OK) fuzz_run_both(graph, draw, weight_of, model);
    stk_graph_free(graph);
    stk_onnx_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { IS_MODEL = 8, MOST_BYTES = 1 << 14 }; /* field 1, the version, which all models begin with */
    fuzz_draw draw = {data, size, 0};
    if (size > MOST_BYTES) return 0;
    if (size && data[0] == IS_MODEL) {
        read_and_run((stk_span){data, size}, &(fuzz_draw){data + size / 2, size - size / 2, 0});
        return 0;
    }
    stk_arena *arena = stk_arena_new();
    if (!arena) return 0;
    draw.at = size ? 1 : 0;
    stk_span bytes = fuzz_make_onnx(arena, &draw);
    if (size && data[0] >= 224)
        for (int n = 1 + fuzz_below(&draw, 4); n > 0 && bytes.n; n--)
            ((uint8_t *)(uintptr_t)bytes.data)[fuzz_below(&draw, 65536) % (int)bytes.n] = (uint8_t)fuzz_byte(&draw);
    read_and_run(bytes, &draw);
    stk_arena_free(arena);
    return 0;
}

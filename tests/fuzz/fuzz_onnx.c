/* An ONNX model from memory: read or refused, nothing else. One whose numbers lie in other files is opened by a path,
 * too, next to a file "w" of 1,024 bytes.
 *
 * covers: onnx/read.c onnx/model.c onnx/tensor.c onnx/external.c onnx/apply.c
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/folder.h"
#include "onnx/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(stk_onnx *model)
{
    free(stk_graph_print(stk_onnx_graph(model)));
    for (int i = 0; i < stk_onnx_n_weights(model); i++)
        if (!stk_onnx_weight(model, i).data) abort();
    stk_onnx_free(model);
}

static bool names_a_file(const uint8_t *data, size_t size)
{
    static const char key[] = "location";
    for (size_t i = 0; i + sizeof(key) - 1 <= size; i++)
        if (!memcmp(data + i, key, sizeof(key) - 1)) return true;
    return false;
}

static void open_by_path(stk_span bytes)
{
    static bool has_numbers;
    static uint8_t numbers[1024];
    char path[256];
    stk_onnx *model;
    for (size_t i = 0; i < sizeof(numbers) && !has_numbers; i++)
        numbers[i] = (uint8_t)(i % 64);
    if (!has_numbers) fuzz_write("w", (stk_span){numbers, sizeof(numbers)});
    has_numbers = true;
    fuzz_write("model.onnx", bytes);
    snprintf(path, sizeof(path), "%s/model.onnx", fuzz_folder());
    if (stk_onnx_open(path, NULL, &model) == STK_OK) look(model);
}

/* As a part of a network of images or rows. */
static void apply(stk_span bytes)
{
    stk_graph *graph = stk_graph_new();
    bool is_image = bytes.n % 2;
    stk_value x = stk_graph_input(graph, "x", STK_F32, is_image ? STK_SHAPE(STK_ANY, 2, 2, 3) : STK_SHAPE(STK_ANY, 4));
    stk_onnx_part part = {.trains_batch_norm = bytes.n % 4 < 2};
    stk_graph_output(graph, "y", stk_onnx_apply_bytes(x, bytes, &part));
    if (stk_graph_status(graph) == STK_OK) free(stk_graph_print(graph));
    stk_graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_onnx *model;
    apply((stk_span){data, size});
    if (stk_onnx_parse(data, size, NULL, &model) == STK_OK) look(model);
    if (names_a_file(data, size)) open_by_path((stk_span){data, size});
    return 0;
}

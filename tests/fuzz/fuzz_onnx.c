/* An ONNX model from memory: read or refused, nothing else.
 *
 * covers: onnx/read.c, onnx/model.c, onnx/tensor.c
 */
#include <stdlib.h>

#include "stoker/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_onnx *model;
    if (stk_onnx_parse(data, size, NULL, &model) != STK_OK) return 0;
    free(stk_graph_print(stk_onnx_graph(model)));
    stk_onnx_free(model);
    return 0;
}

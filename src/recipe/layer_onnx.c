/* The layer onnx: a network from a file. See stoker/files/onnx.h. */
#include "nn/layer_list.h"
#include "stoker/files/onnx.h"

/* Its errors are the graph's: the list tells them. */
static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    *x = stk_onnx_apply_between(*x, stk_yaml_text(s, "file"), stk_yaml_text(s, "input"), stk_yaml_text(s, "output"));
    return STK_OK;
}

static const stk_key keys[] = {
    {.name = "file", .type = STK_KEY_TEXT, .required = true, .doc = "The model, looked for as data is."},
    {.name = "input", .type = STK_KEY_TEXT, .doc = "The value inside that is replaced. Default: the model's input."},
    {.name = "output", .type = STK_KEY_TEXT, .doc = "The value inside that is the result. Default: the first output."},
    {.name = NULL}};

const stk_layer_class stk_layer_class_onnx = {
    .key = {.name = "onnx",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "A network from an ONNX file, with its weights, which are trained on; onnx.md."},
    .build = build,
    .reads_file = true,
};

/* The layer onnx: a network from a file. See stoker/files/onnx.h. */
#include "nn/layer_list.h"
#include "stoker/files/onnx.h"

/* Its errors are the graph's: the list tells them. */
static stk_status build(const stk_yaml_node *s, stk_value *x)
{
    stk_onnx_part part = {.input = stk_yaml_text(s, "input"),
                          .output = stk_yaml_text(s, "output"),
                          .trains_batch_norm = stk_yaml_is(s, "batch_norm", "train")};
    *x = stk_onnx_apply_with(*x, stk_yaml_text(s, "file"), &part);
    return STK_OK;
}

static const stk_key keys[] = {
    {.name = "file", .type = STK_KEY_TEXT, .required = true, .doc = "The model, looked for as data is."},
    {.name = "input", .type = STK_KEY_TEXT, .doc = "The value inside that is replaced. Default: the model's input."},
    {.name = "output", .type = STK_KEY_TEXT, .doc = "The value inside that is the result. Default: the first output."},
    {.name = "batch_norm",
     .type = STK_KEY_WORD,
     .words = (const char *const[]){"frozen", "train", NULL},
     .default_value = "frozen",
     .doc = "By its running statistics, as in inference, or by those of each batch, which these follow."},
    {.name = NULL}};

const stk_layer_class stk_layer_class_onnx = {
    .key = {.name = "onnx",
            .type = STK_KEY_MAP,
            .keys = keys,
            .doc = "A network from an ONNX file, with its weights, which are trained on; onnx.md."},
    .build = build,
    .reads_file = true,
};

/* The layer onnx: a network from a file. See stoker/files/onnx.h. */
#include "recipe/layer_walk.h"
#include "stoker/files/onnx.h"

enum { MOST_INPUTS = 64 };

/* The first becomes *x, and the others more[n]. */
static stk_status find_inputs(const stk_layer_walk *walk, const stk_yaml_node *inputs, stk_value *x,
                              stk_onnx_feed more[MOST_INPUTS], stk_onnx_part *part)
{
    for (const stk_yaml_node *one = inputs->child; one; one = one->next) {
        stk_value value;
        if (part->n_more == MOST_INPUTS) return stk_yaml_fail(inputs, "more than %d inputs", MOST_INPUTS);
        STK_RETURN_IF_ERROR(stk_layer_walk_find(walk, one, one->text, &value));
        if (one == inputs->child)
            *x = value, part->input = one->key;
        else
            more[part->n_more++] = (stk_onnx_feed){one->key, value};
    }
    part->more = more;
    return part->input ? STK_OK : stk_yaml_fail(inputs, "'inputs' is empty");
}

/* The model's errors are the graph's: the list tells them. */
static stk_status build(stk_layer_walk *walk, const stk_yaml_node *s, stk_value *x)
{
    stk_onnx_feed more[MOST_INPUTS];
    const stk_yaml_node *inputs = stk_yaml_get(s, "inputs");
    stk_onnx_part part = {.input = stk_yaml_text(s, "input"),
                          .output = stk_yaml_text(s, "output"),
                          .trains_batch_norm = stk_yaml_is(s, "batch_norm", "train")};
    if (inputs && part.input) return stk_yaml_fail(inputs, "'inputs' and 'input' do not go together");
    if (inputs) STK_RETURN_IF_ERROR(find_inputs(walk, inputs, x, more, &part));
    *x = stk_onnx_apply_with(*x, stk_yaml_text(s, "file"), &part);
    return STK_OK;
}

static const stk_key field_key = {.name = "field", .type = STK_KEY_TEXT};
static const stk_key keys[] = {
    {.name = "file", .type = STK_KEY_TEXT, .required = true, .doc = "The model, looked for as data is."},
    {.name = "input", .type = STK_KEY_TEXT, .doc = "The value inside that is replaced. Default: the model's input."},
    {.name = "inputs",
     .type = STK_KEY_NAMED,
     .element = &field_key,
     .doc = "What each input of the model reads, a name before or a field of the data, instead of the layers before: "
            "{input_ids: tokens, attention_mask: mask}."},
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
    .build_in = build,
    .reads_file = true,
};

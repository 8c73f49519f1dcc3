/* Networks for samples of tokens: BERT, GPT-2, and recurrent text classifiers. See recipe/build.h. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "recipe/build.h"
#include "stoker/nn/recurrent.h"
#include "stoker/nn/transformer.h"
#include "tensor/shape.h"
#include "train/batch_shapes.h"

bool stk_build_takes_tokens(const char *kind)
{
    return !strcmp(kind, "bert") || !strcmp(kind, "gpt2") || !strcmp(kind, "lstm") || !strcmp(kind, "gru");
}

static void take_int(const stk_yaml_node *settings, const char *key, int64_t *out)
{
    const stk_yaml_node *node = stk_yaml_get(settings, key);
    if (node) *out = node->integer;
}

stk_transformer_config stk_build_transformer_config(const stk_recipe *recipe)
{
    const stk_yaml_node *settings = recipe->model, *dropout = stk_yaml_get(settings, "dropout");
    const char *size = stk_yaml_get(settings, "size")->text;
    stk_transformer_config c = {0};
    (void)(!strcmp(recipe->model_kind, "bert") ? stk_bert_size(size, &c) : stk_gpt2_size(size, &c));
    int64_t layers = c.layers, heads = c.heads;
    take_int(settings, "layers", &layers);
    take_int(settings, "heads", &heads);
    take_int(settings, "width", &c.width);
    take_int(settings, "hidden", &c.hidden);
    take_int(settings, "vocabulary", &c.vocabulary);
    take_int(settings, "positions", &c.positions);
    c.layers = (int)layers;
    c.heads = (int)heads;
    c.smoothing = recipe->smoothing;
    if (dropout) c.dropout = dropout->real;
    return c;
}

/* Of samples that differ in length; STK_ANY where batches do not make it one. */
static int64_t open_length(const stk_recipe *recipe, const stk_dataset *train)
{
    int64_t rows, length = recipe->open_length;
    if (length == 0) stk_shapes_largest(train, &rows, &length);
    return length > 0 ? length : STK_ANY;
}

/* The field of tokens i32 [T], under either name, as an input of the model. */
static stk_status add_tokens(const stk_recipe *recipe, const stk_dataset *train, const char *field, stk_model *model,
                             stk_value *out)
{
    stk_tensor_desc desc;
    char text[STK_SHAPE_TEXT_BYTES];
    const stk_yaml_node *length = stk_yaml_get(recipe->model, "length");
    STK_RETURN_IF_ERROR(stk_dataset_field(train, field, true, &desc.dtype, &desc.shape));
    if (desc.shape.rank == 1 && desc.shape.dim[0] == STK_ANY) desc.shape.dim[0] = open_length(recipe, train);
    if (desc.dtype != STK_I32 || desc.shape.rank != 1 || desc.shape.dim[0] == STK_ANY)
        return stk_yaml_fail(
            recipe->part[STK_PART_TRAIN].node,
            "field '%s' is %s after all stages; '%s' wants tokens i32 [length]: add the stage {tokenize: "
            "{tokenizer: ..., length: ...}}, or pad the batches to a 'length'",
            field, stk_desc_text(desc, text), recipe->model_kind);
    if (length && length->integer != desc.shape.dim[0])
        return stk_yaml_fail(length, "the model's length is %lld, the data has %lld %s a sample",
                             (long long)length->integer, (long long)desc.shape.dim[0], field);
    *out = stk_model_input_named(model, field, desc.dtype, desc.shape);
    return STK_OK;
}

static bool has_field(const stk_dataset *dataset, const char *field)
{
    stk_tensor_desc desc;
    return stk_dataset_field(dataset, field, false, &desc.dtype, &desc.shape) == STK_OK;
}

/* The tokens that are not padding; NULL without 'pad'. */
static const stk_value *mask_of(const stk_recipe *recipe, stk_value tokens, stk_value *mask)
{
    const stk_yaml_node *pad = stk_yaml_get(recipe->model, "pad");
    if (!pad) return NULL;
    stk_value none = stk_graph_constant(tokens.graph, STK_I32, (stk_shape){0}, (double)pad->integer);
    *mask = stk_not_equal(tokens, none);
    return mask;
}

static stk_status build_masked(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value tokens)
{
    stk_transformer_config config = stk_build_transformer_config(recipe);
    stk_value targets, mask;
    if (!recipe->part[STK_PART_TRAIN].masked)
        return stk_yaml_fail(recipe->loss, "the loss 'masked_lm' needs hidden tokens: data.train.masked");
    STK_RETURN_IF_ERROR(add_tokens(recipe, train, stk_build_target(recipe, train), model, &targets));
    stk_model_loss(model, stk_bert_masked(tokens, mask_of(recipe, tokens, &mask), targets, &config));
    stk_model_loss_weight(model, stk_count_targets(targets));
    return stk_build_check_model(recipe, model);
}

static stk_status build_bert(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value tokens)
{
    stk_transformer_config config = stk_build_transformer_config(recipe);
    stk_value mask;
    int64_t classes;
    if (!strcmp(recipe->loss->key, "masked_lm")) return build_masked(recipe, train, model, tokens);
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    stk_value logits = stk_bert(tokens, mask_of(recipe, tokens, &mask), &config, classes);
    STK_RETURN_IF_ERROR(stk_build_check_model(recipe, model));
    return stk_build_loss(recipe, train, model, logits);
}

static stk_status build_gpt2(const stk_recipe *recipe, const stk_dataset *train, stk_model *model, stk_value tokens)
{
    stk_transformer_config config = stk_build_transformer_config(recipe);
    stk_value targets;
    if (strcmp(recipe->loss->key, "cross_entropy"))
        return stk_yaml_fail(stk_yaml_get(recipe->yaml->root, "loss"), "'gpt2' has a cross_entropy loss");
    STK_RETURN_IF_ERROR(add_tokens(recipe, train, stk_build_target(recipe, train), model, &targets));
    stk_model_loss(model, stk_gpt2(tokens, targets, &config));
    stk_model_loss_weight(model, stk_count_targets(targets));
    return stk_build_check_model(recipe, model);
}

static stk_status build_recurrent(const stk_recipe *recipe, const stk_dataset *train, stk_model *model,
                                  stk_value tokens)
{
    const stk_yaml_node *settings = recipe->model, *pad = stk_yaml_get(settings, "pad");
    stk_recurrent_classifier c = {.vocabulary = stk_yaml_get(settings, "vocabulary")->integer,
                                  .width = stk_yaml_get(settings, "width")->integer,
                                  .dropout = stk_yaml_get(settings, "dropout")->real};
    stk_value mask = tokens;
    int64_t classes;
    STK_RETURN_IF_ERROR(stk_build_n_classes(recipe, train, &classes));
    if (pad) {
        stk_value none = stk_graph_constant(tokens.graph, STK_I32, (stk_shape){0}, (double)pad->integer);
        mask = stk_not_equal(tokens, none);
    }
    c.recurrent =
        (stk_recurrent_config){.kind = !strcmp(recipe->model_kind, "lstm") ? STK_RECURRENT_LSTM : STK_RECURRENT_GRU,
                               .units = stk_yaml_get(settings, "units")->integer,
                               .layers = (int)stk_yaml_get(settings, "layers")->integer,
                               .bidirectional = stk_yaml_get(settings, "bidirectional")->truth,
                               .dropout = c.dropout,
                               .mask = pad ? &mask : NULL};
    stk_value logits = stk_classify_recurrent(tokens, &c, classes);
    STK_RETURN_IF_ERROR(stk_build_check_model(recipe, model));
    return stk_build_loss(recipe, train, model, logits);
}

stk_status stk_build_of_tokens(const stk_recipe *recipe, const stk_dataset *train, stk_model *model)
{
    stk_value tokens;
    const char *field = has_field(train, "tokens") || !has_field(train, "text") ? "tokens" : "text";
    STK_RETURN_IF_ERROR(add_tokens(recipe, train, field, model, &tokens));
    if (!strcmp(recipe->model_kind, "bert")) return build_bert(recipe, train, model, tokens);
    if (strcmp(recipe->model_kind, "gpt2")) return build_recurrent(recipe, train, model, tokens);
    return build_gpt2(recipe, train, model, tokens);
}

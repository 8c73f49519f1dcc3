/* Transformers: parameter counts, names and shapes of Hugging Face's, folding the positions into the batch, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "graph/graph.h"
#include "stoker/nn/transformer.h"

static void check_status(const stk_model *model)
{
    if (stk_model_status(model) != STK_OK) fail_msg("%s", stk_error_text());
}

static stk_model *make_bert(const char *size, int64_t length, bool masked)
{
    stk_model *model = stk_model_new("bert");
    stk_transformer_config config;
    assert_true(stk_bert_size(size, &config));
    stk_value tokens = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(length));
    stk_value mask = stk_not_equal(tokens, stk_graph_constant(stk_model_graph(model), STK_I32, (stk_shape){0}, 0));
    stk_value logits = stk_bert(tokens, masked ? &mask : NULL, &config, 2);
    stk_model_loss(model, stk_cross_entropy(logits, stk_model_label(model)));
    return model;
}

static stk_model *make_gpt2(const char *size, int64_t length)
{
    stk_model *model = stk_model_new("gpt2");
    stk_transformer_config config;
    assert_true(stk_gpt2_size(size, &config));
    stk_value tokens = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(length));
    stk_value targets = stk_model_input_named(model, "targets", STK_I32, STK_SHAPE(length));
    stk_model_loss(model, stk_gpt2(tokens, targets, &config));
    return model;
}

/* transformers' BertForSequenceClassification(BertConfig()) and GPT2LMHeadModel(GPT2Config()). */
static void parameter_counts(void **state)
{
    (void)state;
    stk_model *bert = make_bert("base", 128, false), *gpt2 = make_gpt2("124m", 256);
    check_status(bert);
    check_status(gpt2);
    assert_int_equal(stk_model_get_size(bert).n_parameters, 109483778);
    assert_int_equal(stk_model_get_size(gpt2).n_parameters, 124439808);
    stk_model_free(bert);
    stk_model_free(gpt2);
}

typedef struct variable {
    const char *name;
    stk_shape shape;
} variable;

/* The first variables in their order, and how many there are. */
static void check_variables(stk_model *model, const variable *want, size_t n_want, int n_all)
{
    const stk_graph *graph = stk_model_graph(model);
    int n = 0;
    check_status(model);
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_variable) continue;
        for (size_t k = 0; k < n_want; k++)
            if (!strcmp(want[k].name, node->name))
                assert_true(stk_shape_equal(graph->value[node->first_out].desc.shape, want[k].shape));
        if ((size_t)n < n_want) assert_string_equal(node->name, want[n].name);
        n++;
    }
    assert_int_equal(n, n_all);
    stk_model_free(model);
}

static void names(void **state)
{
    static const variable bert[] = {
        {"bert.embeddings.word_embeddings.weight", {2, {30522, 128}}},
        {"bert.embeddings.position_embeddings.weight", {2, {512, 128}}},
        {"bert.embeddings.token_type_embeddings.weight", {2, {2, 128}}},
        {"bert.embeddings.LayerNorm.weight", {1, {128}}},
        {"bert.embeddings.LayerNorm.bias", {1, {128}}},
        {"bert.encoder.layer.0.attention.self.query.weight", {2, {128, 128}}},
        {"bert.encoder.layer.0.attention.self.query.bias", {1, {128}}},
        {"bert.encoder.layer.0.attention.self.key.weight", {2, {128, 128}}},
        {"bert.encoder.layer.0.attention.self.key.bias", {1, {128}}},
        {"bert.encoder.layer.0.attention.self.value.weight", {2, {128, 128}}},
        {"bert.encoder.layer.0.attention.self.value.bias", {1, {128}}},
        {"bert.encoder.layer.0.attention.output.dense.weight", {2, {128, 128}}},
        {"bert.encoder.layer.0.attention.output.dense.bias", {1, {128}}},
        {"bert.encoder.layer.0.attention.output.LayerNorm.weight", {1, {128}}},
        {"bert.encoder.layer.0.attention.output.LayerNorm.bias", {1, {128}}},
        {"bert.encoder.layer.0.intermediate.dense.weight", {2, {512, 128}}},
        {"bert.encoder.layer.0.intermediate.dense.bias", {1, {512}}},
        {"bert.encoder.layer.0.output.dense.weight", {2, {128, 512}}},
        {"bert.encoder.layer.0.output.dense.bias", {1, {128}}},
        {"bert.encoder.layer.0.output.LayerNorm.weight", {1, {128}}},
        {"bert.encoder.layer.0.output.LayerNorm.bias", {1, {128}}},
        {"bert.encoder.layer.1.attention.self.query.weight", {2, {128, 128}}},
    };
    static const variable gpt2[] = {
        {"transformer.wte.weight", {2, {50257, 192}}},
        {"transformer.wpe.weight", {2, {1024, 192}}},
        {"transformer.h.0.ln_1.weight", {1, {192}}},
        {"transformer.h.0.ln_1.bias", {1, {192}}},
        {"transformer.h.0.attn.c_attn.weight", {2, {192, 576}}},
        {"transformer.h.0.attn.c_attn.bias", {1, {576}}},
        {"transformer.h.0.attn.c_proj.weight", {2, {192, 192}}},
        {"transformer.h.0.attn.c_proj.bias", {1, {192}}},
        {"transformer.h.0.ln_2.weight", {1, {192}}},
        {"transformer.h.0.ln_2.bias", {1, {192}}},
        {"transformer.h.0.mlp.c_fc.weight", {2, {192, 768}}},
        {"transformer.h.0.mlp.c_fc.bias", {1, {768}}},
        {"transformer.h.0.mlp.c_proj.weight", {2, {768, 192}}},
        {"transformer.h.0.mlp.c_proj.bias", {1, {192}}},
        {"transformer.h.1.ln_1.weight", {1, {192}}},
    };
    (void)state;
    check_variables(make_bert("tiny", 8, false), bert, sizeof(bert) / sizeof(bert[0]), 5 + 2 * 16 + 2 + 2);
    check_variables(make_gpt2("mini", 8), gpt2, sizeof(gpt2) / sizeof(gpt2[0]), 2 + 6 * 12 + 2);
}

/* With the batch bound, the positions that were folded into it come out as many as they are. */
static void bound_to_a_batch(void **state)
{
    (void)state;
    stk_model *models[] = {make_gpt2("mini", 8), make_bert("tiny", 8, true)};
    for (int i = 0; i < 2; i++) {
        check_status(models[i]);
        stk_graph *graph = stk_graph_clone(stk_model_graph(models[i]), 3);
        if (stk_graph_status(graph) != STK_OK) fail_msg("%s", stk_error_text());
        assert_int_equal(stk_graph_verify(graph), STK_OK);
        int n_found = 0;
        for (int k = 0; k < graph->n_nodes; k++) {
            const stk_node *node = &graph->node[k];
            if (node->op == STK_OP_linear_cross_entropy) {
                assert_int_equal(graph->value[node->first_out].desc.shape.dim[0], 3 * 8);
                n_found++;
            }
            if (node->op == STK_OP_attention) assert_int_equal(graph->value[node->first_out].desc.shape.dim[0], 3);
        }
        assert_int_equal(n_found, i == 0 ? 1 : 0);
        stk_value loss = stk_value_of(graph, stk_model_get_loss(models[i]).id);
        assert_int_equal(stk_value_shape(loss).rank, 1);
        assert_int_equal(stk_value_shape(loss).dim[0], 3);
        stk_graph_free(graph);
        stk_model_free(models[i]);
    }
}

/* No two layers draw the same mask. */
static void streams_differ(void **state)
{
    (void)state;
    stk_model *model = make_bert("mini", 8, true);
    const stk_graph *graph = stk_model_graph(model);
    bool used[64] = {false};
    int n = 0;
    check_status(model);
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_dropout && node->op != STK_OP_attention) continue;
        int64_t stream = node->op == STK_OP_dropout ? node->attrs.dropout.stream : node->attrs.attention.stream;
        assert_in_range(stream, 0, 63);
        assert_false(used[stream]);
        used[stream] = true;
        n++;
    }
    assert_int_equal(n, 1 + 4 * 3 + 1);
    stk_model_free(model);
}

static void check_failure(stk_model *model, const char *text)
{
    assert_int_equal(stk_model_status(model), STK_INVALID);
    if (!strstr(stk_error_text(), text)) fail_msg("'%s' does not say '%s'", stk_error_text(), text);
    stk_model_free(model);
}

static void errors(void **state)
{
    (void)state;
    stk_transformer_config config;
    assert_false(stk_bert_size("huge", &config));
    assert_false(stk_gpt2_size("huge", &config));
    check_failure(make_gpt2("mini", 2000), "sequences of 2000 positions are longer than the 1024");
    assert_true(stk_bert_size("tiny", &config));
    config.heads = 3;
    stk_model *model = stk_model_new("bad");
    stk_bert(stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(8)), NULL, &config, 2);
    check_failure(model, "a width of 128 does not divide into 3 heads");
    model = stk_model_new("bad");
    stk_bert(stk_model_input_named(model, "tokens", STK_F32, STK_SHAPE(8)), NULL, &config, 2);
    check_failure(model, "must be tokens i32[N,T]");
    model = stk_model_new("bad");
    stk_self_attention(stk_model_input_named(model, "x", STK_F32, STK_SHAPE(8)), NULL);
    check_failure(model, "must be [N,T,C]");
}

static void self_attention(void **state)
{
    (void)state;
    stk_model *model = stk_model_new("self");
    stk_value x = stk_model_input_named(model, "x", STK_F32, STK_SHAPE(5, 12));
    stk_self_attention_config config = {.attend = {.heads = 3, .causal = true}};
    x = stk_self_attention(stk_self_attention(x, &config), &config);
    check_status(model);
    stk_graph *graph = stk_model_graph(model);
    assert_int_equal(stk_value_shape(x).dim[2], 12);
    assert_true(stk_graph_find(graph, STK_OP_variable, "self_attention.query.weight").id >= 0);
    assert_true(stk_graph_find(graph, STK_OP_variable, "self_attention_1.output.bias").id >= 0);
    stk_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parameter_counts), cmocka_unit_test(names),
                                       cmocka_unit_test(bound_to_a_batch), cmocka_unit_test(streams_differ),
                                       cmocka_unit_test(errors),           cmocka_unit_test(self_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

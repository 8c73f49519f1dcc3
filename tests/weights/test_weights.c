/* Weights with the names and layouts of torchvision and Hugging Face: logits recorded from their networks
 * (tests/golden/make_weights.py), names both ways, and what does not fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/engine.h"
#include "golden/weights_golden.h"
#include "infer/inference_graph.h"
#include "stoker/nn/transformer.h"
#include "stoker/nn/vit.h"
#include "weights/weights.h"

#define FOLDER STK_BINARY_DIR "/weights"

static int fresh_folder(void **state)
{
    (void)state;
    return stk_tree_remove(FOLDER) != STK_OK || stk_dir_make(FOLDER) != STK_OK;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && !strcmp(text + n - n_end, end);
}

/* The generator's formula. */
static void fill_theirs(const char *name, stk_shape shape, float *out)
{
    uint32_t h = 2166136261u;
    int64_t n = stk_shape_count(shape);
    for (const char *c = name; *c; c++)
        h = (h ^ (uint8_t)*c) * 16777619u;
    for (int64_t i = 0; i < n; i++) {
        double x = (double)((uint64_t)(i * 40503 + h) % (1 << 24)) / (1 << 24) - 0.5;
        if (shape.rank > 1)
            x = x * 2 / sqrt((double)stk_shape_product(shape, 1, shape.rank));
        else if (ends_in(name, "running_var") || ends_in(name, "weight"))
            x = 1 + x / 2;
        else
            x = x / 5;
        out[i] = (float)x;
    }
}

/* A file of PyTorch's of the graph's variables; renamed: by that naming. */
static void write_theirs(const stk_graph *graph, const char *path, const stk_naming *renamed)
{
    stk_safetensors_entry_out *entry = calloc(STK_NAME_MOST_PARTS * (size_t)graph->n_nodes, sizeof(*entry));
    int64_t n = 0;
    assert_non_null(entry);
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        char name[512];
        if (node->op != STK_OP_variable) continue;
        stk_shape ours = graph->value[node->first_out].desc.shape, theirs = ours;
        const int32_t *turn = stk_weights_to_theirs(ours.rank);
        for (int d = 0; turn && d < ours.rank; d++)
            theirs.dim[d] = ours.dim[turn[d]];
        float *data = malloc((size_t)stk_shape_count(ours) * sizeof(*data));
        assert_non_null(data);
        fill_theirs(node->name, theirs, data);
        int n_parts = 0;
        while (stk_name_theirs(renamed, node->name, n_parts, name, sizeof(name)))
            n_parts++;
        assert_true(n_parts > 0 && n_parts <= STK_NAME_MOST_PARTS);
        if (n_parts > 1) theirs.dim[0] /= n_parts;
        for (int part = 0; part < n_parts; part++) {
            size_t n_values = (size_t)stk_shape_count(theirs);
            float *share = malloc(n_values * sizeof(*share));
            assert_non_null(share);
            memcpy(share, data + n_values * (size_t)part, n_values * sizeof(*share));
            assert_true(stk_name_theirs(renamed, node->name, part, name, sizeof(name)));
            entry[n++] = (stk_safetensors_entry_out){strdup(name), STK_F32, theirs, share, STK_F32, NULL};
        }
        free(data);
    }
    if (stk_safetensors_write(path, entry, n, NULL, NULL) != STK_OK) fail_msg("%s", stk_error_text());
    for (int64_t i = 0; i < n; i++) {
        free((void *)entry[i].name);
        free((void *)entry[i].data);
    }
    free(entry);
}

static stk_status load_into(stk_engine *engine, const char *path, stk_weights_report *report)
{
    stk_named_tensor tensor[400];
    stk_safetensors_file *file;
    int n = stk_engine_n_variables(engine);
    assert_true(n <= 400);
    for (int i = 0; i < n; i++)
        tensor[i] = (stk_named_tensor){.name = stk_engine_variable(engine, i).name,
                                       .view = stk_engine_variable(engine, i).view};
    if (stk_safetensors_open(path, &file) != STK_OK) fail_msg("%s", stk_error_text());
    stk_status status = stk_weights_load(file, tensor, (size_t)n, NULL, NULL, report);
    stk_safetensors_close(file);
    return status;
}

static void check_logits(stk_model *model, const char *input, const void *data, const float *want, int n,
                         const char *naming)
{
    stk_graph *graph;
    stk_engine *engine;
    stk_program *program;
    stk_weights_report report;
    stk_tensor_desc desc;
    stk_device_config device = {.n_threads = 1};
    stk_compile_options options = {.inference = true};
    if (stk_model_status(model) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_inference_graph(model, 2, &graph), STK_OK);
    write_theirs(graph, FOLDER "/theirs.safetensors", stk_naming_find(naming));
    assert_int_equal(stk_engine_open("cpu", &device, 0, &engine), STK_OK);
    if (stk_engine_compile(engine, graph, &options, &program) != STK_OK) fail_msg("%s", stk_error_text());
    if (load_into(engine, FOLDER "/theirs.safetensors", &report) != STK_OK) fail_msg("%s", stk_error_text());
    assert_string_equal(report.naming->name, naming);
    assert_int_equal(report.n_unused, 0);
    stk_weights_report_free(&report);
    stk_program_bind(program, stk_program_input(program, input), data);
    if (stk_program_run(program) != STK_OK) fail_msg("%s", stk_error_text());
    const float *got = stk_program_output(program, "logits", &desc);
    assert_int_equal(stk_shape_count(desc.shape), n);
    float largest = 0;
    for (int i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(want[i]));
    for (int i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-5f * largest))
            fail_msg("logit %d is %g, theirs %g", i, (double)got[i], (double)want[i]);
    stk_engine_close(engine);
    stk_model_free(model);
}

static void resnets_agree_with_torchvision(void **state)
{
    static float image[2 * 64 * 64 * 3];
    (void)state;
    for (int i = 0; i < (int)(sizeof(image) / sizeof(image[0])); i++)
        image[i] = (float)(i * INT64_C(7919) % 1009) / 1009 - 0.5f;
    for (int depth = 18; depth <= 50; depth += 32) {
        stk_model *model = stk_model_new("resnet");
        stk_value x = stk_model_input(model, STK_F32, 64, 64, 3);
        stk_model_loss(model, stk_cross_entropy(stk_resnet(x, depth, 5, STK_STEM_IMAGENET), stk_model_label(model)));
        check_logits(model, "image", image, depth == 18 ? resnet18_logits : resnet50_logits, 10,
                     depth == 18 ? "pytorch" : "hf-resnet");
    }
}

static const stk_transformer_config tiny = {
    .layers = 2, .heads = 2, .width = 16, .vocabulary = 40, .positions = 12, .hidden = 64};

static void bert_and_gpt2_agree_with_hugging_face(void **state)
{
    int32_t tokens[16];
    (void)state;
    for (int i = 0; i < 16; i++)
        tokens[i] = i * 31 % 40;
    stk_model *bert = stk_model_new("bert"), *gpt2 = stk_model_new("gpt2");
    stk_value x = stk_model_input_named(bert, "tokens", STK_I32, STK_SHAPE(8));
    stk_model_loss(bert, stk_cross_entropy(stk_bert(x, NULL, &tiny, 3), stk_model_label(bert)));
    check_logits(bert, "tokens", tokens, bert_logits, 6, "tensorflow");
    bert = stk_model_new("masked");
    x = stk_model_input_named(bert, "tokens", STK_I32, STK_SHAPE(8));
    stk_model_loss(bert,
                   stk_bert_masked(x, NULL, stk_model_input_named(bert, "targets", STK_I32, STK_SHAPE(8)), &tiny));
    check_logits(bert, "tokens", tokens, masked_logits, 2 * 8 * 40, "pytorch");
    x = stk_model_input_named(gpt2, "tokens", STK_I32, STK_SHAPE(8));
    stk_model_loss(gpt2, stk_gpt2(x, stk_model_input_named(gpt2, "targets", STK_I32, STK_SHAPE(8)), &tiny));
    check_logits(gpt2, "tokens", tokens, gpt2_logits, 2 * 8 * 40, "headless");
}

static void vits_agree_with_torchvision_and_hugging_face(void **state)
{
    static const struct {
        const char *naming;
        const float *logits;
        double eps;
    } kinds[] = {{"pytorch", vit_logits, 0}, {"published-vit", vit_logits, 1e-6}, {"hf-vit", hf_vit_logits, 1e-12}};
    float image[2 * 16 * 16 * 3];
    (void)state;
    for (int i = 0; i < (int)(sizeof(image) / sizeof(image[0])); i++)
        image[i] = (float)(i * INT64_C(7919) % 1009) / 1009 - 0.5f;
    for (int k = 0; k < 3; k++) {
        stk_vit_config config = {.layers = 2, .heads = 2, .patch = 8, .width = 16, .hidden = 64, .eps = kinds[k].eps};
        stk_model *model = stk_model_new("vit");
        stk_value x = stk_model_input(model, STK_F32, 16, 16, 3);
        stk_model_loss(model, stk_cross_entropy(stk_vit(x, &config, 3), stk_model_label(model)));
        check_logits(model, "image", image, kinds[k].logits, 6, kinds[k].naming);
    }
}

static void check_name(const char *naming, const char *ours, const char *theirs)
{
    char name[256];
    const stk_naming *n = stk_naming_find(naming);
    assert_non_null(n);
    assert_true(stk_name_theirs(n, ours, 0, name, sizeof(name)));
    assert_string_equal(name, theirs);
    assert_true(stk_name_ours(n, theirs, name, sizeof(name)));
    assert_string_equal(name, ours);
    assert_false(stk_name_theirs(n, ours, 0, name, strlen(theirs)));
    assert_false(stk_name_theirs(n, ours, 1, name, sizeof(name)));
}

/* theirs: ended by NULL. */
static void check_parts(const char *naming, const char *ours, const char *const *theirs)
{
    char name[256];
    const stk_naming *n = stk_naming_find(naming);
    int i = 0;
    assert_non_null(n);
    for (; theirs[i]; i++) {
        assert_true(stk_name_theirs(n, ours, i, name, sizeof(name)));
        assert_string_equal(name, theirs[i]);
        assert_true(stk_name_ours(n, theirs[i], name, sizeof(name)));
        assert_string_equal(name, ours);
    }
    assert_false(stk_name_theirs(n, ours, i, name, sizeof(name)));
}

static void names_are_understood_both_ways(void **state)
{
    (void)state;
    char name[256];
    check_name("pytorch", "layer1.0.conv1.weight", "layer1.0.conv1.weight");
    check_name("hf-resnet", "layer3.11.conv2.weight", "resnet.encoder.stages.2.layers.11.layer.1.convolution.weight");
    check_name("hf-resnet", "layer4.0.downsample.1.running_var",
               "resnet.encoder.stages.3.layers.0.shortcut.normalization.running_var");
    check_name("hf-resnet", "fc.bias", "classifier.1.bias");
    check_name("headless", "transformer.h.0.ln_1.weight", "h.0.ln_1.weight");
    check_name("tensorflow", "bert.embeddings.LayerNorm.bias", "bert.embeddings.LayerNorm.beta");
    check_name("hf-vit", "encoder.layers.encoder_layer_11.mlp.3.bias", "vit.encoder.layer.11.output.dense.bias");
    check_name("published-vit", "encoder.layers.encoder_layer_0.mlp.3.bias",
               "encoder.layers.encoder_layer_0.mlp.linear_2.bias");
    check_parts("hf-vit", "encoder.layers.encoder_layer_3.self_attention.in_proj_weight",
                (const char *[]){"vit.encoder.layer.3.attention.attention.query.weight",
                                 "vit.encoder.layer.3.attention.attention.key.weight",
                                 "vit.encoder.layer.3.attention.attention.value.weight", NULL});
    assert_false(stk_name_theirs(stk_naming_find("hf-resnet"), "layer0.0.conv1.weight", 0, name, sizeof(name)));
    assert_false(stk_name_theirs(stk_naming_find("hf-resnet"), "head.weight", 0, name, sizeof(name)));
    assert_true(stk_name_is_extra("bn1.num_batches_tracked"));
    assert_false(stk_name_is_extra("fc.bias"));
    assert_null(stk_naming_find("pytorhc"));
}

/* --- what does not fit --- */

static float kernel[2 * 3 * 3 * 4], bias[2];

static stk_status load_pair(const stk_safetensors_entry_out *theirs, int n_theirs, const char *leave,
                            stk_weights_report *report)
{
    const stk_named_tensor ours[] = {{.name = "conv.weight", .view = {{STK_F32, {4, {2, 3, 3, 4}}}, kernel}},
                                     {.name = "conv.bias", .view = {{STK_F32, {1, {2}}}, bias}}};
    stk_safetensors_file *file;
    memset(kernel, 0, sizeof(kernel));
    bias[0] = bias[1] = 7;
    if (stk_safetensors_write(FOLDER "/pair", theirs, n_theirs, NULL, NULL) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_safetensors_open(FOLDER "/pair", &file), STK_OK);
    stk_status status = stk_weights_load(file, ours, 2, leave, NULL, report);
    stk_safetensors_close(file);
    return status;
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    float data[72] = {0};
    stk_weights_report report;
    data[1] = 1; /* o 0, i 0, y 0, x 1 */
    stk_safetensors_entry_out theirs[] = {{"module.conv.weight", STK_F32, {4, {2, 4, 3, 3}}, data, STK_F16, NULL},
                                          {"module.conv.bias", STK_F32, {1, {2}}, data, STK_F32, NULL},
                                          {"module.other", STK_F32, {1, {2}}, data, STK_F32, NULL}};
    assert_int_equal(load_pair(theirs, 3, NULL, &report), STK_OK);
    assert_true(kernel[4] == 1 && bias[0] == 0);
    assert_int_equal(report.n_loaded, 2);
    assert_string_equal(stk_text_get(&report.unused), "module.other");
    stk_weights_report_free(&report);
    assert_int_equal(load_pair(theirs, 1, NULL, &report), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "it lacks 1 of the model's tensors: 'conv.bias'"));
    assert_true(kernel[4] == 0); /* nothing was touched */
    assert_int_equal(load_pair(theirs, 1, "bias", &report), STK_OK);
    assert_true(kernel[4] == 1 && bias[0] == 7);
    assert_string_equal(stk_text_get(&report.left), "conv.bias");
    stk_weights_report_free(&report);
    theirs[0].shape.dim[0] = 1;
    assert_int_equal(load_pair(theirs, 2, NULL, &report), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "'module.conv.weight' is [1,4,3,3] in the file, and the model's "
                                             "'conv.weight' is [2,4,3,3]"));
    assert_int_equal(load_pair(theirs + 2, 1, NULL, &report), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "none of the model's 2 tensors is in it"));
}

static void split_tensors_that_do_not_fit_are_named(void **state)
{
#define OURS   "encoder.layers.encoder_layer_0.self_attention.in_proj_weight"
#define THEIRS "vit.encoder.layer.0.attention.attention."
    static float data[6 * 2], theirs[2 * 2] = {1, 2, 3, 4};
    stk_named_tensor ours = {.name = OURS, .view = {{STK_F32, {2, {6, 2}}}, data}};
    stk_safetensors_entry_out entry[] = {{THEIRS "query.weight", STK_F32, {2, {2, 2}}, theirs, STK_F32, NULL},
                                         {THEIRS "value.weight", STK_F32, {2, {2, 2}}, theirs, STK_F32, NULL},
                                         {THEIRS "key.weight", STK_F32, {2, {2, 2}}, theirs, STK_F32, NULL}};
    stk_weights_report report;
    stk_safetensors_file *file;
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        entry[2].shape.dim[0] = kind == 2 ? 1 : 2;
        ours.view.desc.shape.dim[0] = kind == 3 ? 5 : 6;
        memset(data, 0, sizeof(data));
        assert_int_equal(stk_safetensors_write(FOLDER "/split", entry, kind == 1 ? 2 : 3, NULL, NULL), STK_OK);
        assert_int_equal(stk_safetensors_open(FOLDER "/split", &file), STK_OK);
        stk_status status = stk_weights_load(file, &ours, 1, NULL, "hf-vit", &report);
        stk_safetensors_close(file);
        assert_int_equal(status, kind == 0 ? STK_OK : STK_MISMATCH);
        if (kind == 0) {
            assert_int_equal(report.n_loaded, 1);
            assert_int_equal(report.n_unused, 0);
            assert_true(data[11] == 4);
            stk_weights_report_free(&report);
            continue;
        }
        const char *const said[] = {"", "none of the model's 1 tensors is in it",
                                    "'" THEIRS "key.weight' is [1,2] in the file, and its part of the model's '" OURS
                                    "' is [2,2]",
                                    "the file has 3 tensors for the model's '" OURS "', which is [5,2]"};
        assert_non_null(strstr(stk_error_text(), said[kind]));
        assert_true(data[11] == 0); /* nothing was touched */
    }
#undef OURS
#undef THEIRS
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnets_agree_with_torchvision),
        cmocka_unit_test(bert_and_gpt2_agree_with_hugging_face),
        cmocka_unit_test(vits_agree_with_torchvision_and_hugging_face),
        cmocka_unit_test(split_tensors_that_do_not_fit_are_named),
        cmocka_unit_test(names_are_understood_both_ways),
        cmocka_unit_test(what_does_not_fit_is_named),
    };
    return cmocka_run_group_tests(tests, fresh_folder, NULL);
}

/* Networks written as ONNX and read again give the same logits: convolutions and their bias, pooling, batch norm,
 * linear layers, attention with and without a mask of causality, layer norm, embeddings. What ONNX Runtime makes of the
 * same files is compared by tools/exchange.py.
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
#include "infer/inference_graph.h"
#include "onnx/export.h"
#include "stoker/files/onnx.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/recurrent.h"
#include "stoker/nn/transformer.h"
#include "stoker/nn/vit.h"

#define FOLDER STK_BINARY_DIR "/onnx-export"

enum { ROWS = 3, MOST = 4096 };

static int fresh_folder(void **state)
{
    (void)state;
    return stk_tree_remove(FOLDER) != STK_OK || stk_dir_make(FOLDER) != STK_OK;
}

static void must(stk_status status)
{
    if (status != STK_OK) fail_msg("%s", stk_error_text());
}

static stk_engine *open_engine(void)
{
    stk_engine *engine;
    stk_device_config device = {.n_threads = 1};
    must(stk_engine_open("cpu", &device, 5, &engine));
    return engine;
}

/* Takes graph. Returns the number of logits. */
static int run(stk_engine *engine, stk_graph *graph, const char *input, const void *data, float *logits)
{
    stk_program *program;
    stk_tensor_desc desc;
    stk_compile_options options = {.inference = true};
    must(stk_engine_compile(engine, graph, &options, &program));
    stk_program_bind(program, stk_program_input(program, input), data);
    must(stk_program_run(program));
    const float *got = stk_program_output(program, "logits", &desc);
    int n = (int)stk_shape_count(desc.shape);
    assert_true(n <= MOST);
    memcpy(logits, got, (size_t)n * sizeof(*got));
    return n;
}

static stk_status weight_of(void *user, const char *name, const void **data)
{
    const stk_engine *engine = user;
    for (int i = 0; i < stk_engine_n_variables(engine); i++)
        if (!strcmp(stk_engine_variable(engine, i).name, name)) {
            *data = stk_engine_variable(engine, i).view.data;
            return STK_OK;
        }
    return stk_fail(STK_NOT_FOUND, "no variable '%s'", name);
}

/* Scales and running statistics away from 1 and 0, so that none of them may be left out. */
static void shake_vectors(stk_engine *engine)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++) {
        stk_variable_view v = stk_engine_variable(engine, i);
        if (v.view.desc.shape.rank != 1 || v.view.desc.dtype != STK_F32) continue;
        for (int64_t k = 0; k < v.view.desc.shape.dim[0]; k++)
            ((float *)v.view.data)[k] += 0.3f * sinf((float)(k + 7 * i)) + (strstr(v.name, "var") ? 0.5f : 0);
    }
}

static void load_weights(stk_engine *engine, const stk_onnx *onnx)
{
    for (int w = 0; w < stk_onnx_n_weights(onnx); w++) {
        stk_onnx_tensor t = stk_onnx_weight(onnx, w);
        for (int i = 0; i < stk_engine_n_variables(engine); i++)
            if (!strcmp(stk_engine_variable(engine, i).name, t.name))
                must(stk_engine_write_variable(engine, i, t.data));
    }
}

static int count_inputs(const stk_graph *graph)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == STK_OP_input;
    return n;
}

/* Takes model. */
static void check(stk_model *model, const char *input, const void *data, const char *path, stk_onnx_export options)
{
    static float before[MOST], after[MOST];
    stk_graph *graph, *open;
    stk_onnx *onnx;
    stk_onnx_export_report report;
    stk_engine *engine = open_engine();
    must(stk_model_status(model));
    must(stk_inference_graph(model, ROWS, &graph));
    (void)run(engine, graph, input, data, before); /* makes the variables */
    shake_vectors(engine);
    must(stk_inference_graph(model, ROWS, &graph));
    int n = run(engine, graph, input, data, before);
    must(stk_inference_graph(model, STK_ANY, &open));
    options.weight = weight_of;
    options.user = engine;
    must(stk_onnx_save(open, &options, path, &report));
    stk_graph_free(open);
    stk_engine_close(engine);
    must(stk_onnx_open(path, NULL, &onnx));
    assert_int_equal(count_inputs(stk_onnx_graph(onnx)), 1);
    engine = open_engine();
    graph = stk_graph_clone(stk_onnx_graph(onnx), ROWS);
    assert_non_null(graph);
    must(stk_graph_status(graph));
    (void)run(engine, graph, input, data, after);
    load_weights(engine, onnx);
    graph = stk_graph_clone(stk_onnx_graph(onnx), ROWS);
    assert_int_equal(run(engine, graph, input, data, after), n);
    for (int i = 0; i < n; i++)
        if (!(fabsf(before[i] - after[i]) <= 1e-4f))
            fail_msg("logit %d: %g, %g", i, (double)before[i], (double)after[i]);
    stk_engine_close(engine);
    stk_onnx_free(onnx);
    stk_model_free(model);
}

static float image[ROWS * 16 * 16 * 3];
static int32_t tokens[ROWS * 8];

static void make_inputs(void)
{
    for (size_t i = 0; i < sizeof(image) / sizeof(image[0]); i++)
        image[i] = (float)(i * 7919 % 1009) / 1009 - 0.5f;
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
        tokens[i] = (int32_t)(i * 31 % 40);
}

static stk_value begin(stk_model **model)
{
    make_inputs();
    *model = stk_model_new("network");
    return stk_model_input(*model, STK_F32, 16, 16, 3);
}

static void classify(stk_model *model, stk_value logits)
{
    stk_model_loss(model, stk_cross_entropy(logits, stk_model_label(model)));
}

static void networks_of_images_come_back(void **state)
{
    stk_model *model;
    stk_onnx_export none = {.name = NULL};
    (void)state;
    stk_value x = begin(&model);
    classify(model, stk_mlp(x, (const int64_t[]){10, 6}, 2, 0.5, 4));
    check(model, "image", image, FOLDER "/mlp.onnx", none);
    x = begin(&model);
    classify(model, stk_cnn(x, (const int64_t[]){4, 6}, 2, 4));
    check(model, "image", image, FOLDER "/cnn.onnx", none);
    x = begin(&model);
    classify(model, stk_resnet(x, 18, 4, STK_STEM_CIFAR));
    check(model, "image", image, FOLDER "/resnet.onnx", none);
    /* A bias, padding on one side more, average pooling, an activation that is not piecewise linear, a skip, a mirror
     * of the layout in the middle. */
    x = begin(&model);
    stk_value y = stk_conv2d_with(x, &(stk_conv2d_config){.filters = 5, .kernel = 3, .stride = 2});
    y = stk_gelu(stk_batch_norm(y));
    y = stk_add(y, stk_conv2d_with(y, &(stk_conv2d_config){.filters = 5, .kernel = 1}));
    y = stk_avg_pool_with(y, 3, 2, 1);
    y = stk_softmax(y);
    y = stk_conv2d_transpose_with(y, &(stk_conv2d_transpose_config){.filters = 3, .kernel = 3, .stride = 2});
    classify(model, stk_dense(stk_flatten(stk_silu(y)), 4));
    check(model, "image", image, FOLDER "/mixed.onnx", none);
}

/* Over images, over features, and over one channel a group. */
static void group_norms_come_back(void **state)
{
    stk_model *model;
    stk_onnx_export none = {.name = NULL};
    (void)state;
    stk_value x = begin(&model);
    x = stk_conv2d_with(x, &(stk_conv2d_config){.filters = 6, .kernel = 3});
    x = stk_group_norm_with(x, &(stk_group_norm_config){.groups = 2, .eps = 0.01});
    x = stk_group_norm(stk_relu(x), 6);
    x = stk_dense(stk_flatten(x), 8);
    classify(model, stk_dense(stk_group_norm(x, 2), 4));
    check(model, "image", image, FOLDER "/group_norm.onnx", none);
}

static void transformers_come_back(void **state)
{
    static const stk_transformer_config tiny = {
        .layers = 2, .heads = 2, .width = 16, .vocabulary = 40, .positions = 12, .dropout = 0.1};
    stk_onnx_export none = {.name = NULL};
    stk_model *bert = stk_model_new("bert"), *gpt2 = stk_model_new("gpt2");
    (void)state;
    make_inputs();
    stk_value x = stk_model_input_named(bert, "tokens", STK_I32, STK_SHAPE(8));
    classify(bert, stk_bert(x, NULL, &tiny, 3));
    check(bert, "tokens", tokens, FOLDER "/bert.onnx", none);
    x = stk_model_input_named(gpt2, "tokens", STK_I32, STK_SHAPE(8));
    stk_model_loss(gpt2, stk_gpt2(x, stk_model_input_named(gpt2, "targets", STK_I32, STK_SHAPE(8)), &tiny));
    check(gpt2, "tokens", tokens, FOLDER "/gpt2.onnx", none);
    stk_model *vit;
    x = begin(&vit);
    classify(vit, stk_vit(x, &(stk_vit_config){.layers = 2, .heads = 2, .patch = 8, .width = 16}, 4));
    check(vit, "image", image, FOLDER "/vit.onnx", none);
}

/* As steps, with a mask and without. */
static void recurrent_networks_come_back(void **state)
{
    stk_onnx_export none = {.name = NULL};
    (void)state;
    make_inputs();
    for (int i = 0; i < 4; i++) {
        stk_model *model = stk_model_new("classifier");
        stk_value x = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(8));
        stk_value mask = stk_greater(x, stk_graph_constant(x.graph, STK_I32, (stk_shape){0}, 5));
        stk_recurrent_classifier config = {.recurrent = {.kind = i % 2 ? STK_RECURRENT_GRU : STK_RECURRENT_LSTM,
                                                         .units = 5,
                                                         .bidirectional = i < 2,
                                                         .layers = 2,
                                                         .mask = i < 2 ? &mask : NULL},
                                           .vocabulary = 40,
                                           .width = 6};
        classify(model, stk_classify_recurrent(x, &config, 3));
        check(model, "tokens", tokens, FOLDER "/recurrent.onnx", none);
    }
}

/* Nearest and linear, of images and volumes, while the batch is open. */
static void upsampling_comes_back(void **state)
{
    stk_model *model;
    stk_onnx_export none = {.name = NULL};
    (void)state;
    stk_value x = begin(&model);
    x = stk_upsample_nearest(stk_conv2d_with(x, &(stk_conv2d_config){.filters = 4, .kernel = 3, .stride = 4}), 3);
    x = stk_upsample_linear(stk_conv2d_with(x, &(stk_conv2d_config){.filters = 2, .kernel = 3, .stride = 2}), 2);
    classify(model, stk_dense(stk_flatten(x), 4));
    check(model, "image", image, FOLDER "/upsample.onnx", none);
    make_inputs();
    model = stk_model_new("volumes");
    x = stk_model_input_named(model, "volume", STK_F32, STK_SHAPE(4, 6, 4, 2));
    x = stk_upsample_linear(stk_upsample_nearest(x, 2), 2);
    classify(model, stk_dense(stk_flatten(x), 4));
    check(model, "volume", image, FOLDER "/upsample3d.onnx", none);
}

static stk_status no_weight(void *user, const char *name, const void **data)
{
    (void)user, (void)data;
    return stk_fail(STK_NOT_FOUND, "no weight '%s'", name);
}

static stk_status any_weight(void *user, const char *name, const void **data)
{
    static const float zeros[64];
    (void)user, (void)name;
    *data = zeros;
    return STK_OK;
}

static void what_cannot_be_written_is_named(void **state)
{
    stk_graph *graph = stk_graph_new();
    stk_onnx_export options = {.weight = no_weight};
    stk_onnx_export_report report;
    (void)state;
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(2, 3)),
              y = stk_graph_input(graph, "y", STK_I32, STK_SHAPE(2));
    stk_graph_output(graph, "hit", stk_in_top_k(x, y, 1));
    assert_int_equal(stk_onnx_save(graph, &options, FOLDER "/none.onnx", &report), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "op 'in_top_k' cannot be written"));
    assert_false(stk_path_exists(FOLDER "/none.onnx"));
    stk_graph_free(graph);
    /* Behind a layer, that one is named. */
    stk_model *model = stk_model_new("network");
    x = stk_model_input_named(model, "x", STK_F32, STK_SHAPE(3));
    x = stk_dense(x, 5);
    graph = stk_model_graph(model);
    y = stk_model_input_named(model, "y", STK_I32, (stk_shape){0});
    stk_graph_output(graph, "hit", stk_in_top_k(x, y, 1));
    stk_graph_output(graph, "logits", x);
    options.weight = any_weight;
    assert_int_equal(stk_onnx_save(graph, &options, FOLDER "/none.onnx", &report), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "op 'in_top_k' in layer 'dense' cannot be written as ONNX"));
    stk_model_free(model);
    /* A batch that nothing has. */
    graph = stk_graph_new();
    x = stk_broadcast(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(3)), STK_SHAPE(STK_ANY, 3));
    stk_graph_output(graph, "alike", stk_reshape(x, STK_SHAPE(STK_ANY, 1, 3)));
    options.weight = no_weight;
    assert_int_equal(stk_onnx_save(graph, &options, FOLDER "/none.onnx", &report), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "op 'broadcast' over a batch that is open cannot be written as ONNX"));
    stk_graph_free(graph);
    graph = stk_graph_new();
    x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(2, 3));
    y = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(3), (stk_init){STK_INIT_CONSTANT, 0}, true);
    stk_graph_output(graph, "sum", stk_add(x, y));
    assert_int_equal(stk_onnx_save(graph, &options, FOLDER "/none.onnx", &report), STK_NOT_FOUND);
    assert_non_null(strstr(stk_error_text(), "no weight 'w'"));
    stk_graph_free(graph);
}

static void inputs_and_outputs_are_told(void **state)
{
    stk_graph *graph = stk_graph_new();
    stk_onnx_export options = {.weight = no_weight};
    stk_onnx_export_report report;
    (void)state;
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(STK_ANY, 3)),
              y = stk_graph_input(graph, "y", STK_I32, STK_SHAPE(STK_ANY, 3));
    (void)stk_graph_input(graph, "unread", STK_F32, (stk_shape){0});
    stk_graph_output(graph, "sum", stk_add(x, stk_cast_to(y, STK_F32)));
    stk_graph_output(graph, "twice", stk_add(y, y));
    must(stk_graph_status(graph));
    must(stk_onnx_save(graph, &options, FOLDER "/told.onnx", &report));
    assert_string_equal(report.inputs, "x f32 [N,3], y i32 [N,3]");
    assert_string_equal(report.outputs, "sum f32 [N,3], twice i32 [N,3]");
    stk_graph_free(graph);
    /* Names without end are cut off, and nothing behind them is touched. */
    char name[600];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    graph = stk_graph_new();
    x = stk_graph_input(graph, name, STK_F32, STK_SHAPE(2, 3));
    name[0] = 'b';
    y = stk_graph_input(graph, name, STK_F32, STK_SHAPE(2, 3));
    stk_graph_output(graph, "sum", stk_add(x, y));
    must(stk_onnx_save(graph, &options, FOLDER "/long.onnx", &report));
    assert_in_range(strlen(report.inputs), 600, STK_ONNX_TEXT - 1);
    assert_string_equal(report.outputs, "sum f32 [2,3]");
    stk_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_of_images_come_back),    cmocka_unit_test(group_norms_come_back),
        cmocka_unit_test(transformers_come_back),          cmocka_unit_test(recurrent_networks_come_back),
        cmocka_unit_test(what_cannot_be_written_is_named), cmocka_unit_test(inputs_and_outputs_are_told),
        cmocka_unit_test(upsampling_comes_back),
    };
    return cmocka_run_group_tests(tests, fresh_folder, NULL);
}

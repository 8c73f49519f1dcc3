/* Networks that PyTorch has exported (tests/golden/make_onnx.py), by its older and its newer exporter: the logits are
 * PyTorch's. Weights in another file, open dimensions, and what is said where they cannot be read.
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
#include "golden/onnx_golden.h"
#include "graph/graph.h"
#include "stoker/files/onnx.h"
#include "stoker/nn/nn.h"

#define FOLDER STK_SOURCE_DIR "/tests/golden/onnx/"
#define COPY   STK_BINARY_DIR "/onnx-pytorch"

static void must(stk_status status)
{
    if (status != STK_OK) fail_msg("%s", stk_error_text());
}

static const stk_onnx_size two = {"N", 2};
static const stk_onnx_options sized = {.size = &two, .n_sizes = 1};

static void load_weights(stk_engine *engine, const stk_onnx *model)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++)
        for (int k = 0; k < stk_onnx_n_weights(model); k++)
            if (!strcmp(stk_onnx_weight(model, k).name, stk_engine_variable(engine, i).name))
                must(stk_engine_write_variable(engine, i, stk_onnx_weight(model, k).data));
}

static void check_logits(const char *path, const void *x, const float *want, int n)
{
    stk_onnx *model;
    stk_engine *engine;
    stk_program *program;
    stk_tensor_desc desc;
    stk_device_config device = {.n_threads = 1};
    stk_compile_options options = {.inference = true};
    must(stk_onnx_open(path, &sized, &model));
    must(stk_engine_open("cpu", &device, 1, &engine));
    must(stk_engine_compile(engine, stk_graph_clone(stk_onnx_graph(model), 2), &options, &program));
    load_weights(engine, model);
    stk_program_bind(program, stk_program_input(program, "x"), x);
    must(stk_program_run(program));
    const float *got = stk_program_output(program, "logits", &desc);
    assert_int_equal(stk_shape_count(desc.shape), n);
    for (int i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
            fail_msg("'%s': logit %d is %g, PyTorch's %g", path, i, (double)got[i], (double)want[i]);
    stk_engine_close(engine);
    stk_onnx_free(model);
}

#define N_OF(array) ((int)(sizeof(array) / sizeof(array[0])))

static void logits_are_pytorchs(void **state)
{
    (void)state;
    static float image[2 * 3 * 16 * 16];
    int64_t tokens[12];
    for (int i = 0; i < N_OF(image); i++)
        image[i] = (float)(i * INT64_C(7919) % 1009) / 1009 - 0.5f;
    for (int i = 0; i < N_OF(tokens); i++)
        tokens[i] = i * 7 % 20;
    check_logits(FOLDER "residual-script.onnx", image, residual_logits, N_OF(residual_logits));
    check_logits(FOLDER "residual-new.onnx", image, residual_logits, N_OF(residual_logits));
    check_logits(FOLDER "bert-script.onnx", tokens, bert_logits, N_OF(bert_logits));
    check_logits(FOLDER "bert-new.onnx", tokens, bert_logits, N_OF(bert_logits));
    check_logits(FOLDER "gpt2-script.onnx", tokens, gpt2_logits, N_OF(gpt2_logits));
    check_logits(FOLDER "gpt2-new.onnx", tokens, gpt2_logits, N_OF(gpt2_logits));
    check_logits(FOLDER "norms-script.onnx", image, norms_logits, N_OF(norms_logits));
    check_logits(FOLDER "norms-new.onnx", image, norms_logits, N_OF(norms_logits));
}

static void check_error(const char *path, const stk_onnx_options *options, stk_status status, const char *words)
{
    stk_onnx *model;
    assert_int_equal(stk_onnx_open(path, options, &model), status);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
}

static void open_dimensions_are_named(void **state)
{
    (void)state;
    const stk_onnx_size wrong = {"N", -2};
    check_error(FOLDER "gpt2-script.onnx", NULL, STK_UNSUPPORTED, "the dimension 'N' that the model leaves open");
    check_error(FOLDER "gpt2-script.onnx", &(stk_onnx_options){.size = &wrong, .n_sizes = 1}, STK_CORRUPT,
                "its dimension 0 is -2");
    /* Where nothing asks for it, it stays open. */
    stk_onnx *model;
    must(stk_onnx_open(FOLDER "residual-new.onnx", NULL, &model));
    stk_value logits = stk_graph_find_output(stk_onnx_graph(model), "logits");
    assert_true(stk_shape_equal(stk_value_shape(logits), STK_SHAPE(STK_ANY, 3)));
    stk_onnx_free(model);
}

/* The model, its weights cut to n bytes, and its location of them replaced by another of the same length. */
static void copy_model(size_t n, const char *location)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n_bytes;
    must(stk_dir_make(COPY));
    must(stk_file_read(FOLDER "residual-new.onnx.data", &bytes, &capacity, &n_bytes));
    must(stk_file_write_durably(COPY "/residual-new.onnx.data", bytes, n < n_bytes ? n : n_bytes));
    must(stk_file_read(FOLDER "residual-new.onnx", &bytes, &capacity, &n_bytes));
    static const char name[] = "residual-new.onnx.data";
    int n_found = 0;
    for (size_t i = 0; i + strlen(name) <= n_bytes; i++) {
        if (memcmp(bytes + i, name, strlen(name)) != 0) continue;
        memcpy(bytes + i, location, strlen(name));
        n_found++;
    }
    assert_true(n_found > 0 && strlen(location) == strlen(name));
    must(stk_file_write_durably(COPY "/model.onnx", bytes, n_bytes));
    free(bytes);
}

static void weights_in_another_file_are_checked(void **state)
{
    (void)state;
    uint8_t *bytes = NULL;
    size_t capacity = 0, n_bytes;
    stk_onnx *model;
    const char *path = COPY "/model.onnx";
    copy_model(SIZE_MAX, "residual-new.onnx.data");
    must(stk_onnx_open(path, NULL, &model));
    stk_onnx_free(model);
    copy_model(1000, "residual-new.onnx.data");
    check_error(path, NULL, STK_CORRUPT, "which has 1000");
    copy_model(SIZE_MAX, "residual-new.onnx.dat_");
    check_error(path, NULL, STK_NOT_FOUND, "residual-new.onnx.dat_': ");
    copy_model(SIZE_MAX, "../../../../etc/passwd");
    check_error(path, NULL, STK_CORRUPT, "which is not next to the model");
    copy_model(SIZE_MAX, "/etc//////////////pass");
    check_error(path, NULL, STK_CORRUPT, "which is not next to the model");
    copy_model(SIZE_MAX, "./././././././././././");
    check_error(path, NULL, STK_CORRUPT, "which is no file");
    must(stk_file_read(path, &bytes, &capacity, &n_bytes));
    assert_int_equal(stk_onnx_parse(bytes, n_bytes, NULL, &model), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "open the model by its path"));
    free(bytes);
    must(stk_tree_remove(COPY));
}

/* --- as a part of another network --- */

static stk_value find_variable(stk_graph *graph, const char *name)
{
    return stk_graph_find(graph, STK_OP_variable, name);
}

/* Images come as [N,H,W,C]; the weights need no loading, and the scope stands before their names. */
static void check_image_part(const char *path, const float *image, const float *want, int n_want)
{
    enum { N = 2, C = 3, SIDE = 16 };
    static float nhwc[N * SIDE * SIDE * C];
    stk_engine *engine;
    stk_program *program;
    stk_tensor_desc desc;
    stk_device_config device = {.n_threads = 1};
    stk_compile_options options = {.inference = true};
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int i = 0; i < SIDE * SIDE; i++)
                nhwc[(n * SIDE * SIDE + i) * C + c] = image[(n * C + c) * SIDE * SIDE + i];
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "image", STK_F32, STK_SHAPE(STK_ANY, SIDE, SIDE, C));
    stk_scope_push(graph, "body");
    stk_value logits = stk_onnx_apply(x, path, NULL);
    stk_scope_pop(graph);
    stk_graph_output(graph, "twice", stk_scale_by(logits, 2));
    must(stk_graph_status(graph));
    assert_true(stk_shape_equal(stk_value_shape(logits), STK_SHAPE(STK_ANY, n_want / N)));
    must(stk_engine_open("cpu", &device, 1, &engine));
    must(stk_engine_compile(engine, stk_graph_clone(graph, N), &options, &program));
    stk_program_bind(program, stk_program_input(program, "image"), nhwc);
    must(stk_program_run(program));
    const float *got = stk_program_output(program, "twice", &desc);
    for (int i = 0; i < n_want; i++)
        if (!(fabsf(got[i] / 2 - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
            fail_msg("'%s': logit %d is %g, PyTorch's %g", path, i, (double)got[i] / 2, (double)want[i]);
    stk_engine_close(engine);
    stk_graph_free(graph);
}

/* The first n of two texts of six tokens, and so the first half of all logits or all of them: the model computes with
   the size of the batch, which is not known when it becomes a part. */
static void check_text_part(const char *path, int n, const float *want, int n_want)
{
    int32_t tokens[12];
    stk_engine *engine;
    stk_program *program;
    stk_tensor_desc desc;
    stk_device_config device = {.n_threads = 1};
    stk_compile_options options = {.inference = true};
    for (int i = 0; i < N_OF(tokens); i++)
        tokens[i] = i * 7 % 20;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "tokens", STK_I32, STK_SHAPE(STK_ANY, 6));
    stk_graph_output(graph, "logits", stk_onnx_apply(x, path, NULL));
    must(stk_graph_status(graph));
    must(stk_engine_open("cpu", &device, 1, &engine));
    must(stk_engine_compile(engine, stk_graph_clone(graph, n), &options, &program));
    stk_program_bind(program, stk_program_input(program, "tokens"), tokens);
    must(stk_program_run(program));
    const float *got = stk_program_output(program, "logits", &desc);
    assert_int_equal(stk_shape_count(desc.shape), n_want * n / 2);
    for (int i = 0; i < n_want * n / 2; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
            fail_msg("'%s': logit %d is %g, PyTorch's %g", path, i, (double)got[i], (double)want[i]);
    stk_engine_close(engine);
    stk_graph_free(graph);
}

static void a_model_is_a_part_of_a_network(void **state)
{
    (void)state;
    static float image[2 * 3 * 16 * 16];
    for (int n = 1; n <= 2; n++) {
        check_text_part(FOLDER "bert-script.onnx", n, bert_logits, N_OF(bert_logits));
        check_text_part(FOLDER "bert-new.onnx", n, bert_logits, N_OF(bert_logits));
    }
    for (int i = 0; i < N_OF(image); i++)
        image[i] = (float)(i * INT64_C(7919) % 1009) / 1009 - 0.5f;
    check_image_part(FOLDER "residual-script.onnx", image, residual_logits, N_OF(residual_logits));
    check_image_part(FOLDER "residual-new.onnx", image, residual_logits, N_OF(residual_logits));
    /* Group norms make shapes of the batch's size. */
    check_image_part(FOLDER "norms-script.onnx", image, norms_logits, N_OF(norms_logits));
    check_image_part(FOLDER "norms-new.onnx", image, norms_logits, N_OF(norms_logits));
}

/* What comes after the value that is asked for is not there, nor are its weights. */
static void a_model_can_be_cut(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "image", STK_F32, STK_SHAPE(STK_ANY, 16, 16, 3));
    stk_value inside = stk_onnx_apply(x, FOLDER "residual-new.onnx", "relu_2");
    must(stk_graph_status(graph));
    assert_true(stk_shape_equal(stk_value_shape(inside), STK_SHAPE(STK_ANY, 4, 4, 4)));
    assert_true(find_variable(graph, "net.stem.0.weight").id >= 0);
    assert_true(find_variable(graph, "net.fc.weight").id < 0);
    stk_graph_free(graph);
}

static void refuse_part(stk_dtype dtype, stk_shape shape, const char *name, const char *output, stk_status status,
                        const char *words)
{
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "image", dtype, shape);
    assert_true(stk_onnx_apply(x, name, output).id < 0);
    assert_int_equal(stk_graph_status(graph), status);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    stk_graph_free(graph);
}

static void parts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    const char *path = FOLDER "residual-new.onnx";
    stk_shape image = STK_SHAPE(STK_ANY, 16, 16, 3);
    refuse_part(STK_F32, STK_SHAPE(STK_ANY, 16, 16, 1), path, NULL, STK_MISMATCH,
                "the model reads [?,3,16,16], and what comes is [?,16,16,1], which fits neither");
    refuse_part(STK_F32, STK_SHAPE(STK_ANY, 768), path, NULL, STK_MISMATCH, "and what comes is [?,768]");
    refuse_part(STK_I32, image, path, NULL, STK_MISMATCH, "the model reads f32, and what comes is i32");
    refuse_part(STK_F32, image, path, "nothing", STK_NOT_FOUND, "no node makes a value 'nothing'");
    refuse_part(STK_F32, image, path, "net.fc.weight", STK_NOT_FOUND, "no node makes a value 'net.fc.weight'");
    refuse_part(STK_F32, image, FOLDER "absent.onnx", NULL, STK_NOT_FOUND, "absent.onnx");
    /* Their masks are gathered from one with the batch in front. */
    stk_shape text = STK_SHAPE(STK_ANY, 6);
    refuse_part(STK_I32, text, FOLDER "gpt2-script.onnx", NULL, STK_UNSUPPORTED,
                "it computes with the size of the batch");
    refuse_part(STK_I32, text, FOLDER "gpt2-new.onnx", NULL, STK_UNSUPPORTED, "its input's size is not known");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_pytorchs),
        cmocka_unit_test(open_dimensions_are_named),
        cmocka_unit_test(weights_in_another_file_are_checked),
        cmocka_unit_test(a_model_is_a_part_of_a_network),
        cmocka_unit_test(a_model_can_be_cut),
        cmocka_unit_test(parts_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

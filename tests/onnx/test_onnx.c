/* Reading ONNX models: what comes out of one, and what is said of those that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "graph/graph.h"
#include "high_water.h"
#include "stoker/files/onnx.h"

#define CORPUS STK_SOURCE_DIR "/tests/fuzz/corpus/onnx/"

static int count(const stk_graph *graph, stk_op op)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == op;
    return n;
}

/* conv -> relu -> pool: the input is transposed once and the last output once, and nothing between. */
static void layouts_meet(void **state)
{
    (void)state;
    stk_onnx *model;
    if (stk_onnx_open(CORPUS "conv", NULL, &model) != STK_OK) fail_msg("%s", stk_error_text());
    stk_graph *graph = stk_onnx_graph(model);
    assert_int_equal(stk_graph_verify(graph), STK_OK);
    assert_true(stk_graph_find(graph, STK_OP_input, "x").id >= 0);
    stk_value y = stk_graph_find_output(graph, "y");
    assert_true(stk_shape_equal(stk_value_shape(y), STK_SHAPE(2, 45)));
    /* The weight's is the third. */
    assert_int_equal(count(graph, STK_OP_transpose), 3);
    /* The shape is no weight: it was needed at once, and is not needed later. */
    assert_int_equal(stk_onnx_n_weights(model), 1);
    stk_onnx_tensor w = stk_onnx_weight(model, 0);
    assert_string_equal(w.name, "w");
    assert_true(w.dtype == STK_F32 && stk_shape_equal(w.shape, STK_SHAPE(5, 3, 3, 3)));
    assert_true(((const float *)w.data)[134] == 134.0f / 135);
    assert_null(stk_onnx_weight(model, 1).name);
    stk_onnx_free(model);
}

static void shapes_are_known_at_once(void **state)
{
    (void)state;
    stk_onnx *model;
    if (stk_onnx_open(CORPUS "shape", NULL, &model) != STK_OK) fail_msg("%s", stk_error_text());
    stk_value y = stk_graph_find_output(stk_onnx_graph(model), "y");
    assert_true(stk_shape_equal(stk_value_shape(y), STK_SHAPE(2, 3, 4, 4)));
    stk_onnx_free(model);
}

static void check_error(const char *file, stk_status status, const char *words)
{
    stk_onnx *model;
    assert_int_equal(stk_onnx_open(file, NULL, &model), status);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
}

static void errors_name_node_and_op(void **state)
{
    (void)state;
    check_error(CORPUS "unknown", STK_UNSUPPORTED, "node 'n_y' (Frobnicate): the op is not known here");
    check_error(CORPUS "deep", STK_CORRUPT, "nested too deep");
    check_error(STK_SOURCE_DIR "/README.md", STK_CORRUPT, "no ONNX model");
    check_error(CORPUS "nothing", STK_NOT_FOUND, "nothing");
}

/* --- bounds --- */

static void put_varint(stk_text *out, size_t x)
{
    for (; x >= 128; x >>= 7)
        stk_text_add_bytes(out, &(uint8_t){(uint8_t)(x | 128)}, 1);
    stk_text_add_bytes(out, &(uint8_t){(uint8_t)x}, 1);
}

static void put(stk_text *out, int field, const void *bytes, size_t n)
{
    put_varint(out, (size_t)field << 3 | 2);
    put_varint(out, n);
    stk_text_add_bytes(out, bytes, n);
}

/* The file of a graph's bytes. */
static stk_text model_of(const stk_text *graph)
{
    stk_text model = {0}, opset = {0};
    put_varint(&opset, 2 << 3);
    put_varint(&opset, 13);
    put(&model, 7, graph->data, graph->n);
    put(&model, 8, opset.data, opset.n);
    assert_int_equal(stk_text_status(&model), STK_OK);
    stk_text_free(&opset);
    return model;
}

/* Two bytes of an empty attribute become two hundred of a struct. */
static void messages_take_no_more_than_their_bound(void **state)
{
    (void)state;
    stk_onnx *onnx;
    stk_text graph = {0}, node = {0};
    for (int i = 0; i < 6 << 20; i++)
        stk_text_add_bytes(&node, "\x2a", 2);
    put(&graph, 1, node.data, node.n);
    stk_text model = model_of(&graph);
    size_t before = high_water();
    assert_int_equal(stk_onnx_parse(model.data, model.n, NULL, &onnx), STK_UNSUPPORTED);
    if (!strstr(stk_error_text(), "would take more than 280 MiB of memory")) fail_msg("%s", stk_error_text());
    assert_true(high_water() - before < (size_t)400 << 20);
    stk_text_free(&graph);
    stk_text_free(&node);
    stk_text_free(&model);
}

/* x -> Relu -> Relu -> ... -> y, each with a name of its own. */
static stk_text chain_of(int n)
{
    stk_text graph = {0};
    stk_text x = {0}, type = {0}, shape = {0}, dim = {0};
    put(&shape, 1, "\x08\x04", 2); /* a dimension of 4 */
    put_varint(&dim, 1 << 3);
    put_varint(&dim, 1); /* f32 */
    put(&dim, 2, shape.data, shape.n);
    put(&type, 1, dim.data, dim.n);
    put(&x, 1, "v0", 2);
    put(&x, 2, type.data, type.n);
    put(&graph, 11, x.data, x.n);
    for (int i = 0; i < n; i++) {
        stk_text node = {0};
        char name[32];
        put(&node, 1, name, (size_t)snprintf(name, sizeof(name), "v%d", i));
        put(&node, 2, name, (size_t)snprintf(name, sizeof(name), i == n - 1 ? "y" : "v%d", i + 1));
        put(&node, 4, "Relu", 4);
        put(&graph, 1, node.data, node.n);
        stk_text_free(&node);
    }
    stk_text y = {0};
    put(&y, 1, "y", 1);
    put(&graph, 12, y.data, y.n);
    stk_text model = model_of(&graph);
    stk_text_free(&graph);
    stk_text_free(&x);
    stk_text_free(&y);
    stk_text_free(&type);
    stk_text_free(&shape);
    stk_text_free(&dim);
    return model;
}

/* Seconds of processor time, the least of three. */
static double seconds_for(int n)
{
    double least = 1e9;
    stk_text model = chain_of(n);
    for (int i = 0; i < 3; i++) {
        stk_onnx *onnx;
        double start = thread_seconds();
        if (stk_onnx_parse(model.data, model.n, NULL, &onnx) != STK_OK) fail_msg("%s", stk_error_text());
        double seconds = thread_seconds() - start;
        if (seconds < least) least = seconds;
        stk_onnx_free(onnx);
    }
    stk_text_free(&model);
    return least;
}

/* Names were looked for one after the other: eight times the nodes took sixty times the time. */
static void names_are_found_in_a_table(void **state)
{
    (void)state;
    double few = seconds_for(8000), many = seconds_for(64000);
    if (many > 30 * few) fail_msg("8000 nodes take %.3f s, 64000 take %.3f s", few, many);
}

static void too_many_nodes_are_refused(void **state)
{
    (void)state;
    stk_onnx *onnx;
    stk_text model = chain_of(200001);
    assert_int_equal(stk_onnx_parse(model.data, model.n, NULL, &onnx), STK_UNSUPPORTED);
    if (!strstr(stk_error_text(), "200000 of each are the most")) fail_msg("%s", stk_error_text());
    stk_text_free(&model);
}

/* In a process that gets no more memory: a model whose first text is larger than what is free. */
static void memory_that_is_not_there_is_no_damage(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their allocators end the process */
#endif
    enum { TEXT_BYTES = 1 << 24 };
    static const uint8_t begins[] = {0x12, 0x80, 0x80, 0x80, 0x08}; /* producer_name, of N bytes */
    int end;
    uint8_t *bytes = calloc(1, sizeof(begins) + TEXT_BYTES);
    assert_non_null(bytes);
    memcpy(bytes, begins, sizeof(begins));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        stk_onnx *model = NULL;
        struct rlimit none = {1, 1};
        if (setrlimit(RLIMIT_AS, &none) < 0) _exit(2);
        _exit(stk_onnx_parse(bytes, sizeof(begins) + TEXT_BYTES, NULL, &model) == STK_NO_MEMORY ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    free(bytes);
    assert_int_equal(end, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_not_there_is_no_damage),
        cmocka_unit_test(layouts_meet),
        cmocka_unit_test(shapes_are_known_at_once),
        cmocka_unit_test(errors_name_node_and_op),
        cmocka_unit_test(messages_take_no_more_than_their_bound),
        cmocka_unit_test(names_are_found_in_a_table),
        cmocka_unit_test(too_many_nodes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

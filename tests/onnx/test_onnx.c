/* Reading ONNX models: what comes out of one, and what is said of those that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "graph/graph.h"
#include "stoker/onnx.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_meet),
        cmocka_unit_test(shapes_are_known_at_once),
        cmocka_unit_test(errors_name_node_and_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

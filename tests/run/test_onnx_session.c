/* A model that leaves its batch open is refused with the input's name until it is given a size, and then runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "stoker/files/onnx_session.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/nn.h"

static const char path[] = "open.onnx";

static stk_graph *make_network(int64_t batch)
{
    stk_graph *graph = stk_graph_new();
    stk_graph_output(graph, "y", stk_dense(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(batch, 3)), 2));
    return graph;
}

static void an_open_batch_wants_a_size(void **state)
{
    (void)state;
    stk_session *session = stk_session_new(NULL, 1, 1), *other = stk_session_new(NULL, 1, 2);
    stk_onnx *model;
    stk_session_value value;
    stk_graph *open_graph = make_network(STK_ANY);
    assert_non_null(stk_session_compile(session, make_network(2), false));
    if (stk_session_export_onnx(session, open_graph, path) == STK_UNSUPPORTED) skip();
    stk_graph_free(open_graph);

    assert_int_equal(stk_onnx_open(path, NULL, &model), STK_OK);
    assert_null(stk_session_compile_onnx(other, model));
    assert_int_equal(stk_session_status(other), STK_INVALID);
    if (!strstr(stk_error_text(), "input 'x' is [?,3]") || !strstr(stk_error_text(), "a size"))
        fail_msg("%s", stk_error_text());
    stk_onnx_free(model);
    stk_session_free(other);

    const stk_onnx_options options = {.size = &(stk_onnx_size){"N", 5}, .n_sizes = 1};
    other = stk_session_new(NULL, 1, 2);
    assert_int_equal(stk_onnx_open(path, &options, &model), STK_OK);
    stk_session_step *step = stk_session_compile_onnx(other, model);
    assert_int_equal(stk_session_status(other), STK_OK);
    assert_int_equal(stk_session_step_input(step, 0, &value), STK_OK);
    assert_int_equal(value.shape.dim[0], 5);
    stk_onnx_free(model);
    stk_session_free(other);
    stk_session_free(session);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_open_batch_wants_a_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

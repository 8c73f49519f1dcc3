/* Steps run by hand: what two graphs share, what stays as it is, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stoker/graph/session.h"
#include "stoker/nn/nn.h"

enum { ROWS = 4 };

/* mean((w x - 2 x)^2) with w in the scope "a", and b, which the loss adds the square of, in "b". */
static stk_graph *make_graph(const char *only, bool minimised)
{
    stk_graph *graph = stk_graph_new();
    stk_init zero = {STK_INIT_CONSTANT, 0}, one = {STK_INIT_CONSTANT, 1};
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(ROWS));
    stk_value w = stk_graph_variable(graph, "a.w", STK_F32, STK_SHAPE(1), zero, true);
    stk_value b = stk_graph_variable(graph, "b.w", STK_F32, STK_SHAPE(1), one, true);
    stk_value error = stk_reduce_mean(stk_square(stk_sub(stk_mul(x, w), stk_scale_by(x, 2))), 0);
    stk_value loss = stk_add(error, stk_reduce_sum(stk_square(b), 0));
    stk_graph_output(graph, "loss", loss);
    stk_graph_output(graph, "w", stk_reduce_sum(w, 0));
    stk_graph_output(graph, "b", stk_reduce_sum(b, 0));
    if (minimised) stk_minimize(loss, stk_sgd(.lr = 0.1), 0, only);
    return graph;
}

static void expect_near(double value, double wanted)
{
    if (!(fabs(value - wanted) < 1e-6)) fail_msg("%g is not %g", value, wanted);
}

static void optimisers_take_turns(void **state)
{
    static const float x[ROWS] = {1, -1, 1, -1};
    (void)state;
    stk_session *session = stk_session_new("reference", 1, 1);
    stk_session_step *first = stk_session_compile(session, make_graph("a", true), true);
    stk_session_step *second = stk_session_compile(session, make_graph("b", true), true);
    stk_session_step *look = stk_session_compile(session, make_graph(NULL, false), false);
    stk_session_input(first, "x", x);
    stk_session_input(second, "x", x);
    stk_session_input(look, "x", x);
    assert_true(isnan(stk_session_scalar(look, "loss"))); /* Nothing has run. */
    stk_session_run(first);
    expect_near(stk_session_scalar(first, "loss"), 5);
    stk_session_run(look);
    expect_near(stk_session_scalar(look, "w"), 0.4); /* 0.1 * 2 * 2 */
    expect_near(stk_session_scalar(look, "b"), 1);
    stk_session_rate(second, 0.25);
    stk_session_run(second);
    assert_int_equal(stk_session_run(look), STK_OK);
    expect_near(stk_session_scalar(look, "w"), 0.4);
    expect_near(stk_session_scalar(look, "b"), 0.5);
    assert_null(stk_session_output(look, "nothing"));
    stk_session_free(session);
}

/* What is dropped goes by how often the session, not a step, has run. */
static void no_two_runs_drop_alike(void **state)
{
    enum { N = 64 };
    static float x[N], first[N];
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = 1;
    stk_session *session = stk_session_new("reference", 1, 1);
    stk_session_step *step[2];
    for (int i = 0; i < 2; i++) {
        stk_graph *graph = stk_graph_new();
        stk_graph_output(graph, "y", stk_dropout(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(1, N)), 0.5));
        step[i] = stk_session_compile(session, graph, true);
        stk_session_input(step[i], "x", x);
    }
    assert_int_equal(stk_session_run(step[0]), STK_OK);
    memcpy(first, stk_session_output(step[0], "y"), sizeof(first));
    assert_int_equal(stk_session_run(step[1]), STK_OK);
    assert_memory_not_equal(stk_session_output(step[1], "y"), first, sizeof(first));
    assert_int_equal(stk_session_run(step[0]), STK_OK);
    assert_memory_not_equal(stk_session_output(step[0], "y"), first, sizeof(first));
    stk_session_free(session);
}

static void expect_error(stk_session *session, stk_status status, const char *text)
{
    stk_status found = stk_session_status(session);
    if (found != status) fail_msg("%s: %s", stk_status_text(found), stk_error_text());
    if (!strstr(stk_error_text(), text)) fail_msg("'%s' is not in '%s'", text, stk_error_text());
    stk_session_free(session);
}

static void mistakes_are_named(void **state)
{
    static const float x[ROWS];
    (void)state;
    stk_session *session = stk_session_new("reference", 1, 1);
    stk_session_step *step = stk_session_compile(session, make_graph(NULL, true), true);
    assert_int_equal(stk_session_run(step), STK_INVALID);
    assert_int_equal(stk_session_run(step), STK_INVALID); /* The first error stays. */
    expect_error(session, STK_INVALID, "input 'x' is not set");

    session = stk_session_new("reference", 1, 1);
    step = stk_session_compile(session, make_graph(NULL, true), true);
    stk_session_input(step, "y", x);
    expect_error(session, STK_NOT_FOUND, "no input 'y'");

    session = stk_session_new("reference", 1, 1);
    assert_null(stk_session_compile(session, make_graph("c", true), true));
    assert_null(stk_session_compile(session, make_graph(NULL, true), true));
    expect_error(session, STK_NOT_FOUND, "no parameter matches 'c'");

    session = stk_session_new("reference", 1, 1);
    stk_graph *twice = make_graph("a", true);
    stk_minimize(stk_reduce_sum(stk_graph_variable(twice, "c", STK_F32, STK_SHAPE(2), (stk_init){0}, true), 0),
                 stk_sgd(.lr = 1), 0, NULL);
    stk_session_compile(session, twice, true);
    expect_error(session, STK_INVALID, "minimised twice");

    session = stk_session_new("abacus", 1, 1);
    assert_null(stk_session_compile(session, make_graph(NULL, true), true));
    expect_error(session, STK_NO_DEVICE, "abacus");
    assert_int_equal(stk_session_run(NULL), STK_INVALID);
    stk_session_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimisers_take_turns),
        cmocka_unit_test(no_two_runs_drop_alike),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

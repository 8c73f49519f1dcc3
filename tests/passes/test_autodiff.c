/* Gradients of gradients: a gradient penalty's derivatives compared with central differences in f64, derivatives of any
 * order of a polynomial, and what is said where an op's gradient has none. First gradients: tests/harness.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "harness/harness.h"
#include "harness/run_graph.h"
#include "passes/passes.h"
#include "stoker/nn/layers.h"
#include "stoker/nn/nn.h"

enum { N = 5, D = 3, WIDTH = 4, MOST = 16 };

static stk_device *reference;

static stk_value leaky_relu(stk_value x)
{
    return stk_leaky_relu(x, 0.2);
}

static stk_value largest(stk_value x)
{
    return stk_broadcast(stk_reshape(stk_reduce_max(x, 2), STK_SHAPE(N, 1)), STK_SHAPE(N, WIDTH));
}

static stk_value f64(stk_graph *graph, const char *name, stk_shape shape)
{
    return stk_graph_input(graph, name, STK_F64, shape);
}

/* mean((|d critic(x) / dx| - 1)^2): Gulrajani et al. 2017. */
static stk_value penalty(stk_graph *graph, stk_value (*activate)(stk_value))
{
    stk_value x = f64(graph, "x", STK_SHAPE(N, D)), w = f64(graph, "w", STK_SHAPE(D, WIDTH));
    stk_value b = f64(graph, "b", STK_SHAPE(1, WIDTH)), u = f64(graph, "u", STK_SHAPE(WIDTH, 1));
    stk_value y = stk_matmul(activate(stk_add(stk_matmul(x, w, false, false), b)), u, false, false);
    stk_value slope = stk_sqrt(stk_reduce_sum(stk_square(stk_grad(y, x)), 2));
    return stk_reduce_mean(stk_square(stk_shift_by(slope, -1)), 0);
}

static double loss_at(graph_run *run, double *at, double moved)
{
    double kept = *at;
    *at = moved;
    assert_int_equal(graph_run_all(run), STK_OK);
    *at = kept;
    return *(double *)graph_run_output(run, "loss");
}

static void check_leaf(graph_run *run, const char *activation, const char *name, int n)
{
    char output[8];
    double want[MOST], *leaf = graph_run_leaf(run, name), step = 1e-5;
    snprintf(output, sizeof(output), "d%s", name);
    assert_int_equal(graph_run_all(run), STK_OK);
    memcpy(want, graph_run_output(run, output), (size_t)n * sizeof(double));
    for (int i = 0; i < n && leaf; i++) { /* a leaf that nothing reads any more has no memory */
        double difference =
            (loss_at(run, leaf + i, leaf[i] + step) - loss_at(run, leaf + i, leaf[i] - step)) / (2 * step);
        if (!(fabs(want[i] - difference) < 1e-7 * (1 + fabs(difference))))
            fail_msg("%s, %s %d: %.10g, and differences say %.10g", activation, name, i, want[i], difference);
    }
}

static void penalties(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        stk_value (*activate)(stk_value);
    } kinds[] = {
        {"relu", stk_relu},          {"leaky_relu", leaky_relu}, {"elu", stk_elu},   {"tanh", stk_tanh},
        {"sigmoid", stk_sigmoid},    {"silu", stk_silu},         {"gelu", stk_gelu}, {"softplus", stk_softplus},
        {"square", stk_square},      {"sin", stk_sin},           {"exp", stk_exp},   {"largest", largest},
        {"gelu_tanh", stk_gelu_tanh}};
    static const struct {
        const char *name;
        stk_shape shape;
    } leaves[] = {{"x", {2, {N, D}}}, {"w", {2, {D, WIDTH}}}, {"b", {2, {1, WIDTH}}}, {"u", {2, {WIDTH, 1}}}};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        stk_graph *graph = stk_graph_new();
        graph_run run;
        stk_value loss = penalty(graph, kinds[k].activate);
        stk_graph_output(graph, "loss", loss);
        for (int i = 0; i < 4; i++) {
            char name[8];
            snprintf(name, sizeof(name), "d%s", leaves[i].name);
            for (int32_t v = 0; v < graph->n_nodes; v++)
                if (graph->node[v].op == STK_OP_input && !strcmp(graph->node[v].name, leaves[i].name))
                    stk_graph_output(graph, name, stk_grad(loss, stk_value_of(graph, graph->node[v].first_out)));
        }
        if (pass_autodiff(graph, &(stk_pass_options){0}) != STK_OK) fail_msg("%s: %s", kinds[k].name, stk_error_text());
        assert_int_equal(stk_graph_verify(graph), STK_OK);
        assert_int_equal(graph_run_open(graph, reference, &run), STK_OK);
        for (int i = 0; i < 4; i++) {
            double *leaf = graph_run_leaf(&run, leaves[i].name);
            for (int64_t j = 0; leaf && j < stk_shape_count(leaves[i].shape); j++)
                leaf[j] = 2 * harness_random(3 + (uint64_t)i, (uint64_t)j) - 1;
        }
        for (int i = 0; i < 4; i++)
            check_leaf(&run, kinds[k].name, leaves[i].name, (int)stk_shape_count(leaves[i].shape));
        graph_run_close(&run);
        stk_graph_free(graph);
    }
}

/* x^4: 4 x^3, 12 x^2, 24 x, 24, 0. Asked for out of their order. */
static void any_order(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = f64(graph, "x", STK_SHAPE(2)), y = stk_square(stk_square(x)), d[6];
    graph_run run;
    d[0] = y;
    for (int i = 1; i < 6; i++)
        d[i] = stk_grad(d[i - 1], x);
    for (int i = 5; i >= 0; i--)
        stk_graph_output(graph, (const char *[]){"0", "1", "2", "3", "4", "5"}[i], d[i]);
    assert_int_equal(pass_autodiff(graph, &(stk_pass_options){0}), STK_OK);
    assert_int_equal(graph_run_open(graph, reference, &run), STK_OK);
    double *leaf = graph_run_leaf(&run, "x");
    assert_non_null(leaf);
    leaf[0] = 2;
    leaf[1] = -1;
    static const double want[6][2] = {{16, 1}, {32, -4}, {48, 12}, {48, -24}, {24, 24}, {0, 0}};
    assert_int_equal(graph_run_all(&run), STK_OK);
    for (int i = 0; i < 6; i++) {
        const double *have = graph_run_output(&run, (const char *[]){"0", "1", "2", "3", "4", "5"}[i]);
        for (int j = 0; j < 2; j++)
            if (fabs(have[j] - want[i][j]) > 1e-12)
                fail_msg("derivative %d of x^4 is %g, not %g", i, have[j], want[i][j]);
    }
    graph_run_close(&run);
    stk_graph_free(graph);
}

/* An error, and not a gradient that leaves something out. */
static void refused(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = f64(graph, "x", STK_SHAPE(4, 8, 8, 2)), y = stk_max_pool(x, 2);
    stk_graph_output(graph, "d", stk_grad(stk_square(stk_grad(stk_square(y), x)), x));
    assert_int_equal(pass_autodiff(graph, &(stk_pass_options){0}), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "max_pool2d_grad has no gradient"));
    stk_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(penalties), cmocka_unit_test(any_order),
                                       cmocka_unit_test(refused)};
    if (stk_device_open("reference", NULL, &reference) != STK_OK) return 1;
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    stk_device_close(reference);
    return n_failed;
}

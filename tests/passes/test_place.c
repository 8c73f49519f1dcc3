/* Devices for layers, and the copies between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "passes/passes.h"

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static int count(const stk_graph *graph, stk_op op, int32_t device)
{
    int n = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == op && (device < 0 || graph->value[graph->node[i].first_out].device == device);
    return n;
}

/* Each node reads what lies where it does. */
static void expect_connected(const stk_graph *graph)
{
    expect_ok(stk_graph_verify(graph));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op == STK_OP_copy_to || node->op == STK_OP_all_reduce || node->op == STK_OP_grad) continue;
        for (int j = 0; j < node->n_in; j++)
            assert_int_equal(graph->value[node->in[j]].device, graph->value[node->first_out].device);
    }
    for (int r = 0; r < graph->n_roots; r++) {
        int32_t variable = graph->root[r].variable;
        assert_int_equal(graph->value[graph->root[r].value].device, variable < 0 ? 0 : graph->value[variable].device);
    }
}

static stk_value add_layer(stk_value x, const char *name)
{
    stk_init init = {STK_INIT_CONSTANT, 0.5};
    stk_value w = stk_graph_variable(x.graph, name, STK_F32, STK_SHAPE(8, 8), init, true);
    return stk_tanh(stk_matmul(x, w, false, false));
}

static stk_value weight_of(stk_graph *graph, const char *name)
{
    return stk_graph_find(graph, STK_OP_variable, name);
}

/* x -> a -> b.0 -> b.1 -> c; the rate is an input. */
static stk_graph *make_step(void)
{
    static const char *const names[] = {"a.weight", "b.0.weight", "b.1.weight", "c.weight"};
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(8, 8));
    stk_value rate = stk_graph_input(graph, "rate", STK_F32, (stk_shape){0});
    for (int i = 0; i < 4; i++)
        x = add_layer(x, names[i]);
    stk_value loss = stk_reduce_sum(x, 0);
    stk_graph_output(graph, "loss", loss);
    for (int i = 0; i < 4; i++) {
        stk_value w = weight_of(graph, names[i]);
        stk_graph_update(graph, w, stk_sub(w, stk_mul(stk_grad(loss, w), rate)));
    }
    return graph;
}

static void layers_go_where_they_are_told(void **state)
{
    (void)state;
    static const stk_place_mark marks[] = {{"b", 1}, {"b.1", 2}};
    stk_pass_options options = {.place = marks, .n_places = 2, .n_devices = 3};
    stk_graph *graph = make_step();
    expect_ok(pass_place(graph, &options));
    expect_connected(graph);
    assert_int_equal(graph->value[weight_of(graph, "a.weight").id].device, 0);
    assert_int_equal(graph->value[weight_of(graph, "b.0.weight").id].device, 1);
    assert_int_equal(graph->value[weight_of(graph, "b.1.weight").id].device, 2); /* the longest mark counts */
    assert_int_equal(graph->value[weight_of(graph, "c.weight").id].device, 0);
    for (int d = 1; d < 3; d++) {
        assert_int_equal(count(graph, STK_OP_matmul, d), 1);
        assert_int_equal(count(graph, STK_OP_copy_to, d), 2); /* what the layer before gives, and the rate */
    }
    assert_int_equal(count(graph, STK_OP_copy_to, 0), 1);
    expect_ok(pass_autodiff(graph, &options));
    expect_ok(pass_simplify(graph, &options));
    expect_ok(pass_fuse(graph, &options));
    expect_ok(pass_settle(graph, &options));
    expect_connected(graph);
    assert_int_equal(count(graph, STK_OP_matmul, 1), 3); /* and two gradients, where the layer lies */
    assert_int_equal(count(graph, STK_OP_matmul, 2), 3);
    assert_int_equal(count(graph, STK_OP_copy_to, -1), 5 + 3); /* a gradient goes back over each border */
    stk_graph_free(graph);
}

static void without_marks_all_is_on_the_first(void **state)
{
    (void)state;
    stk_pass_options options = {.n_devices = 2};
    stk_graph *graph = make_step();
    expect_ok(pass_place(graph, &options));
    expect_connected(graph);
    assert_int_equal(count(graph, STK_OP_copy_to, -1), 0);
    stk_graph_free(graph);
}

/* What nothing is read for is made on each device that reads it. */
static void constants_are_made_where_they_are_read(void **state)
{
    (void)state;
    stk_pass_options options = {.n_devices = 2};
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(8));
    stk_value one = stk_graph_constant(graph, STK_F32, STK_SHAPE(8), 1);
    stk_value here = stk_add(x, one), there = stk_add(one, stk_copy_to(x, 1));
    stk_graph_output(graph, "y", stk_mul(here, there));
    expect_ok(pass_settle(graph, &options));
    expect_connected(graph);
    assert_int_equal(count(graph, STK_OP_constant, 0), 1);
    assert_int_equal(count(graph, STK_OP_constant, 1), 1);
    assert_int_equal(count(graph, STK_OP_copy_to, -1), 2);
    stk_graph_free(graph);
}

/* Which pass made it, and whether that said where it is, does not count. */
static void what_has_inputs_is_computed_where_they_lie(void **state)
{
    (void)state;
    stk_pass_options options = {.n_devices = 2};
    stk_graph *graph = stk_graph_new();
    stk_value there = stk_copy_to(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(8, 8)), 1);
    stk_value y = stk_matmul(there, there, false, false);
    graph->value[y.id].device = 0;
    stk_graph_output(graph, "y", y);
    expect_ok(pass_settle(graph, &options));
    expect_connected(graph);
    assert_int_equal(count(graph, STK_OP_matmul, 1), 1);
    assert_int_equal(count(graph, STK_OP_copy_to, -1), 2);
    stk_graph_free(graph);
}

static void sums_become_copies_where_memory_is_apart(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        stk_pass_options options = {.n_devices = 3, .shared_memory = shared};
        stk_graph *graph = stk_graph_new();
        stk_value x = stk_graph_input(graph, "x", STK_BF16, STK_SHAPE(8)), parts[3], sum[3];
        for (int i = 0; i < 3; i++)
            parts[i] = stk_exp(stk_copy_to(x, i));
        stk_all_reduce(parts, 3, true, sum);
        stk_graph_output(graph, "y", stk_mul(sum[1], stk_exp(stk_copy_to(sum[2], 1))));
        expect_ok(stk_graph_status(graph));
        assert_int_equal(graph->value[sum[2].id].device, 2);
        expect_ok(pass_settle(graph, &options));
        expect_connected(graph);
        assert_int_equal(count(graph, STK_OP_all_reduce, -1), shared);
        stk_graph_free(graph);
    }
}

static void wrong_marks_are_named(void **state)
{
    (void)state;
    stk_place_mark mark = {"d", 1};
    stk_pass_options options = {.place = &mark, .n_places = 1, .n_devices = 2};
    stk_graph *graph = make_step();
    assert_int_equal(pass_place(graph, &options), STK_NOT_FOUND);
    assert_non_null(strstr(stk_error_text(), "no layer 'd'"));
    mark = (stk_place_mark){"c", -1};
    assert_int_equal(pass_place(graph, &options), STK_INVALID);
    stk_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_go_where_they_are_told),
        cmocka_unit_test(without_marks_all_is_on_the_first),
        cmocka_unit_test(constants_are_made_where_they_are_read),
        cmocka_unit_test(what_has_inputs_is_computed_where_they_lie),
        cmocka_unit_test(sums_become_copies_where_memory_is_apart),
        cmocka_unit_test(wrong_marks_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which dtypes autocast gives to whom. That the numbers are right is tests/engine/test_precision.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "optim/update.h"
#include "passes/passes.h"
#include "stoker/nn/nn.h"

static const stk_pass_options bf16 = {.compute = STK_BF16}, f16 = {.compute = STK_F16}, f32 = {.compute = STK_F32};

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static int count_nodes(const stk_graph *graph, stk_op op)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == op;
    return n;
}

static const stk_node *maker(const stk_graph *graph, int32_t value)
{
    return &graph->node[graph->value[value].node];
}

static stk_dtype input_dtype(const stk_graph *graph, const stk_node *node, int i)
{
    return graph->value[node->in[i]].desc.dtype;
}

/* The n-th node of that op, from 0. */
static const stk_node *find(const stk_graph *graph, stk_op op, int n)
{
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == op && n-- == 0) return &graph->node[i];
    fail_msg("there is no such '%s'", stk_op_name(op));
    return NULL;
}

static stk_dtype output_dtype(const stk_graph *graph, stk_op op, int n)
{
    return graph->value[find(graph, op, n)->first_out].desc.dtype;
}

/* Two convolutions, the second with a shortcut around it, and a classifier. */
static stk_graph *make_network(stk_dtype dtype)
{
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "image", dtype, STK_SHAPE(4, 6, 6, 3));
    stk_value label = stk_graph_input(graph, "label", STK_I32, STK_SHAPE(4));
    x = stk_relu(stk_batch_norm(stk_conv2d(x, 8, 3)));
    x = stk_add(stk_conv2d(x, 8, 3), x);
    x = stk_dense(stk_global_pool(x), 5);
    stk_value loss = stk_reduce_mean(stk_cross_entropy(x, label), 0);
    stk_graph_output(graph, "loss", loss);
    stk_graph_output(graph, "logits", x);
    stk_optim_options options = {.optimizer = stk_sgd(.lr = 0.1, .momentum = 0.9), .clip_norm = 1};
    expect_ok(stk_optim_build(graph, loss, &options));
    return graph;
}

static void the_policy_holds(void **state)
{
    (void)state;
    const stk_pass_options *policies[] = {&bf16, &f16};
    for (int i = 0; i < 2; i++) {
        stk_dtype low = policies[i]->compute;
        stk_graph *graph = make_network(STK_F32);
        expect_ok(pass_autocast(graph, policies[i]));
        expect_ok(stk_graph_verify(graph));
        for (int j = 0; j < 2; j++) {
            const stk_node *conv = find(graph, STK_OP_conv2d, j);
            assert_int_equal(input_dtype(graph, conv, 0), low);
            assert_int_equal(input_dtype(graph, conv, 1), low);
        }
        const stk_node *norm = find(graph, STK_OP_batch_norm, 0);
        assert_int_equal(graph->value[norm->first_out].desc.dtype, low);
        for (int j = 1; j < 5; j++) {
            assert_int_equal(input_dtype(graph, norm, j), STK_F32);
            assert_int_equal(graph->value[norm->first_out + j].desc.dtype, STK_F32);
        }
        /* The biases follow, the shortcut stays narrow; sums, the last layer and the loss do not. */
        assert_int_equal(output_dtype(graph, STK_OP_binary, 0), low);
        assert_int_equal(output_dtype(graph, STK_OP_reduce, 0), STK_F32);
        assert_int_equal(output_dtype(graph, STK_OP_matmul, 0), STK_F32);
        assert_int_equal(output_dtype(graph, STK_OP_cross_entropy, 0), STK_F32);
        for (int j = 0; j < graph->n_nodes; j++)
            if (graph->node[j].op == STK_OP_variable)
                assert_int_equal(graph->value[graph->node[j].first_out].desc.dtype, STK_F32);
        for (int j = 0; j < count_nodes(graph, STK_OP_sgd_update); j++)
            assert_int_equal(output_dtype(graph, STK_OP_sgd_update, j), STK_F32);
        stk_graph_free(graph);
    }
}

static int count_tf32(const stk_graph *graph, stk_op op)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == op && graph->node[i].attrs.tf32;
    return n;
}

/* Products and convolutions with their gradients; no dtype changes, and a layer kept in f32 stays exact. */
static void tf32_marks_products_and_their_gradients(void **state)
{
    (void)state;
    const stk_pass_options tf32 = {.compute = STK_F32, .tf32 = true};
    stk_graph *graph = make_network(STK_F32);
    expect_ok(pass_autocast(graph, &tf32));
    expect_ok(pass_autodiff(graph, &tf32));
    expect_ok(pass_simplify(graph, &tf32));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_cast), 0);
    assert_int_equal(count_nodes(graph, STK_OP_matmul), 3);
    assert_int_equal(count_nodes(graph, STK_OP_conv2d_grad_weight), 2);
    const stk_op products[] = {STK_OP_matmul, STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    for (int i = 0; i < 4; i++)
        assert_int_equal(count_tf32(graph, products[i]), count_nodes(graph, products[i]));
    for (int i = 0; i < graph->n_nodes; i++)
        if (!stk_op_takes_tf32(graph->node[i].op)) assert_int_equal(graph->node[i].attrs.tf32, 0);
    stk_graph_free(graph);

    graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
    x = stk_dense(x, 5);
    stk_f32_push(graph);
    x = stk_dense(x, 6);
    stk_f32_pop(graph);
    stk_optim_options options = {.optimizer = stk_sgd(.lr = 0.1)};
    expect_ok(stk_optim_build(graph, stk_reduce_mean(x, 0), &options));
    expect_ok(pass_autocast(graph, &tf32));
    expect_ok(pass_autodiff(graph, &tf32));
    assert_int_equal(count_nodes(graph, STK_OP_matmul), 4);
    assert_int_equal(count_tf32(graph, STK_OP_matmul), 2); /* The first layer and its weight's gradient. */
    stk_graph_free(graph);

    graph = make_network(STK_F32);
    expect_ok(pass_autocast(graph, &f32));
    assert_int_equal(count_tf32(graph, STK_OP_conv2d), 0);
    stk_graph_free(graph);
}

/* From the sum over the batch to the update nothing rounds a weight's gradient to 16 bits. */
static void gradients_of_weights_are_never_narrow(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "image", STK_F32, STK_SHAPE(4, 6, 6, 3));
    stk_value loss = stk_reduce_mean(stk_dense(stk_flatten(stk_dense(stk_conv2d(x, 8, 3), 4)), 1), 0);
    stk_optim_options options = {.optimizer = stk_sgd(.lr = 0.1)};
    expect_ok(stk_optim_build(graph, loss, &options));
    expect_ok(pass_autocast(graph, &bf16));
    expect_ok(pass_autodiff(graph, &bf16));
    expect_ok(pass_simplify(graph, &bf16));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_sgd_update), 6);
    for (int i = 0; i < 6; i++) {
        const stk_node *update = find(graph, STK_OP_sgd_update, i), *grad = maker(graph, update->in[1]);
        while (grad->op == STK_OP_reshape)
            grad = maker(graph, grad->in[0]);
        bool is_sum = grad->op == STK_OP_conv2d_grad_weight || grad->op == STK_OP_matmul || grad->op == STK_OP_reduce;
        if (!is_sum) fail_msg("gradient %d comes from '%s'", i, stk_op_name(grad->op));
    }
    stk_graph_free(graph);
}

/* A parameter used twice is rounded once, in front of what spreads it. */
static void parameters_are_cast_once(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_BF16, STK_SHAPE(4, 3));
    stk_value bias = stk_graph_variable(graph, "bias", STK_F32, STK_SHAPE(3), (stk_init){0}, true);
    stk_value wide = stk_broadcast(bias, STK_SHAPE(4, 3));
    stk_value weight = stk_graph_variable(graph, "weight", STK_F32, STK_SHAPE(3, 3), (stk_init){0}, true);
    /* The type check of `add` knows no mixed inputs: each is cast as a user would, which autocast then undoes. */
    stk_value y = stk_matmul(stk_cast_to(x, STK_F32), weight, false, false);
    y = stk_matmul(stk_add(y, wide), weight, false, false);
    y = stk_matmul(stk_add(y, wide), weight, false, false);
    stk_graph_output(graph, "y", y);
    expect_ok(pass_autocast(graph, &bf16));
    expect_ok(pass_simplify(graph, &bf16));
    expect_ok(stk_graph_verify(graph));
    int n_casts = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_cast) continue;
        const stk_node *source = maker(graph, node->in[0]);
        assert_true(source->op != STK_OP_broadcast);
        n_casts += source->op == STK_OP_variable;
    }
    assert_int_equal(n_casts, 2); /* the last product reads the weight in f32 */
    stk_graph_free(graph);
}

static void layers_can_be_kept_in_f32(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 6, 6, 3));
    x = stk_conv2d(x, 4, 3);
    stk_f32_push(graph);
    x = stk_batch_norm(stk_conv2d(x, 4, 3));
    stk_f32_pop(graph);
    x = stk_conv2d(x, 4, 3);
    stk_graph_output(graph, "y", stk_conv2d(x, 4, 3));
    stk_graph *clone = stk_graph_clone(graph, 4);
    expect_ok(pass_autocast(clone, &bf16));
    expect_ok(stk_graph_verify(clone));
    assert_int_equal(output_dtype(clone, STK_OP_conv2d, 0), STK_BF16);
    assert_int_equal(output_dtype(clone, STK_OP_conv2d, 1), STK_F32);
    assert_int_equal(output_dtype(clone, STK_OP_batch_norm, 0), STK_F32);
    assert_int_equal(output_dtype(clone, STK_OP_conv2d, 2), STK_BF16);
    assert_int_equal(output_dtype(clone, STK_OP_conv2d, 3), STK_F32); /* the last one */
    stk_f32_pop(graph);
    assert_int_equal(stk_graph_status(graph), STK_INVALID);
    stk_graph_free(clone);
    stk_graph_free(graph);
}

/* Without a policy, and for a model in f64, nothing is touched. */
static void other_graphs_stay_as_they_are(void **state)
{
    (void)state;
    stk_graph *single = make_network(STK_F32), *dbl = make_network(STK_F64);
    int n_single = single->n_nodes;
    expect_ok(pass_autocast(single, &f32));
    expect_ok(pass_autocast(dbl, &bf16));
    assert_int_equal(single->n_nodes, n_single);
    for (int i = 0; i < dbl->n_values; i++)
        assert_true(dbl->value[i].desc.dtype != STK_BF16);
    stk_graph_free(single);
    stk_graph_free(dbl);
}

/* What overflows or loses too much in 16 bits runs in f32, between casts. */
static void exponentials_are_wide(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_BF16, STK_SHAPE(4, 3));
    stk_graph_output(graph, "exp", stk_exp(x));
    stk_graph_output(graph, "softmax", stk_softmax(x));
    stk_graph_output(graph, "tanh", stk_tanh(x));
    expect_ok(pass_autocast(graph, &bf16));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(output_dtype(graph, STK_OP_unary, 0), STK_BF16); /* tanh */
    assert_int_equal(output_dtype(graph, STK_OP_softmax, 0), STK_F32);
    assert_int_equal(stk_value_dtype(stk_graph_find_output(graph, "exp")), STK_BF16);
    assert_int_equal(stk_value_dtype(stk_graph_find_output(graph, "softmax")), STK_BF16);
    stk_graph_free(graph);
}

/* The table stays f32 and so does its gradient; the rows that were read are rounded. */
static void tables_are_not_rounded(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value ids = stk_graph_input(graph, "ids", STK_I32, STK_SHAPE(4, 3));
    stk_value table = stk_graph_variable(graph, "table", STK_F32, STK_SHAPE(9, 8), (stk_init){0}, true);
    stk_value x = stk_gather(table, ids, 0),
              scale = stk_graph_variable(graph, "s", STK_F32, STK_SHAPE(8), (stk_init){0}, true);
    x = stk_dense(stk_dense(stk_mul(x, scale), 8), 8);
    stk_value loss = stk_reduce_sum(x, 0);
    stk_graph_output(graph, "loss", loss);
    stk_graph_output(graph, "grad", stk_grad(loss, table));
    expect_ok(pass_autocast(graph, &bf16));
    expect_ok(pass_autodiff(graph, &bf16));
    expect_ok(pass_simplify(graph, &bf16));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(output_dtype(graph, STK_OP_gather, 0), STK_F32);
    assert_int_equal(output_dtype(graph, STK_OP_scatter_add, 0), STK_F32);
    assert_int_equal(output_dtype(graph, STK_OP_binary, 0), STK_BF16);
    stk_graph_free(graph);
}

/* bf16 -> f32 -> bf16 is nothing; f32 -> bf16 -> f32 rounds and stays. */
static void only_widening_casts_are_undone(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_BF16, STK_SHAPE(4)),
              y = stk_graph_input(graph, "y", STK_F32, STK_SHAPE(4));
    stk_graph_output(graph, "a", stk_cast_to(stk_cast_to(x, STK_F32), STK_BF16));
    stk_graph_output(graph, "b", stk_cast_to(stk_cast_to(y, STK_BF16), STK_F32));
    stk_graph_output(graph, "c", stk_cast_to(stk_cast_to(x, STK_F16), STK_BF16));
    expect_ok(pass_simplify(graph, &f32));
    assert_int_equal(count_nodes(graph, STK_OP_cast), 4);
    assert_int_equal(maker(graph, stk_graph_find_output(graph, "a").id)->op, STK_OP_input);
    stk_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policy_holds),
        cmocka_unit_test(tf32_marks_products_and_their_gradients),
        cmocka_unit_test(gradients_of_weights_are_never_narrow),
        cmocka_unit_test(parameters_are_cast_once),
        cmocka_unit_test(layers_can_be_kept_in_f32),
        cmocka_unit_test(other_graphs_stay_as_they_are),
        cmocka_unit_test(exponentials_are_wide),
        cmocka_unit_test(tables_are_not_rounded),
        cmocka_unit_test(only_widening_casts_are_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

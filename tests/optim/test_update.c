/* The optimiser's part of a graph: which nodes, variables, inputs and updates there are, and with which attributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "graph/graph.h"
#include "optim/update.h"

static stk_graph *graph;
static stk_value loss;

/* A convolution without names of its own, batch norm as torchvision calls it, a dense layer, and a variable that the
 * loss does not see. */
static int set_up(void **state)
{
    (void)state;
    stk_init one = {STK_INIT_CONSTANT, 1};
    graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "image", STK_F32, STK_SHAPE(4, 6));
    stk_value in[5] = {x};
    in[1] = stk_graph_variable(graph, "bn1.weight", STK_F32, STK_SHAPE(6), one, true);
    in[2] = stk_graph_variable(graph, "bn1.bias", STK_F32, STK_SHAPE(6), one, true);
    in[3] = stk_graph_variable(graph, "bn1.running_mean", STK_F32, STK_SHAPE(6), one, false);
    in[4] = stk_graph_variable(graph, "bn1.running_var", STK_F32, STK_SHAPE(6), one, false);
    stk_attrs attrs = stk_attrs_zero();
    attrs.batch_norm.eps = 1e-5;
    x = stk_graph_add(graph, STK_OP_batch_norm, &attrs, in, 5);
    x = stk_matmul(x, stk_graph_variable(graph, "fc.weight", STK_F32, STK_SHAPE(3, 6), one, true), false, true);
    x = stk_add(x, stk_graph_variable(graph, "fc.bias", STK_F32, STK_SHAPE(3), one, true));
    stk_graph_variable(graph, "unused.weight", STK_F32, STK_SHAPE(3), one, true);
    loss = stk_reduce_mean(x, 0);
    stk_graph_output(graph, "loss", loss);
    assert_int_equal(stk_graph_status(graph), STK_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stk_graph_free(graph);
    return 0;
}

static void build(const stk_optim_options *options)
{
    if (stk_optim_build(graph, loss, options) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_graph_verify(graph), STK_OK);
}

static int count(stk_op op)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == op;
    return n;
}

static stk_value find(const char *name)
{
    return stk_graph_find(graph, STK_OP_variable, name);
}

/* The node whose output the variable becomes, as output number i_out. */
static const stk_node *find_update(const char *name, int i_out)
{
    for (int i = 0; i < graph->n_roots; i++) {
        if (graph->root[i].variable != find(name).id) continue;
        const stk_node *node = stk_value_node(stk_value_of(graph, graph->root[i].value));
        assert_int_equal(graph->root[i].value, node->first_out + i_out);
        return node;
    }
    fail_msg("'%s' is not updated", name);
    return NULL;
}

static bool has_update(const char *name)
{
    for (int i = 0; i < graph->n_roots; i++)
        if (find(name).id >= 0 && graph->root[i].variable == find(name).id) return true;
    return false;
}

static void plain_sgd(void **state)
{
    (void)state;
    stk_optim_options options = {.optimizer = stk_sgd(.lr = 0.1)};
    build(&options);
    assert_int_equal(count(STK_OP_grad), 4);
    assert_int_equal(count(STK_OP_sgd_update), 4);
    const stk_node *node = find_update("fc.weight", 0);
    assert_int_equal(node->n_in, 3);
    assert_int_equal(node->in[0], find("fc.weight").id);
    const stk_node *grad = stk_value_node(stk_value_of(graph, node->in[1]));
    assert_int_equal(grad->op, STK_OP_grad);
    assert_int_equal(grad->in[0], loss.id);
    assert_int_equal(grad->in[1], node->in[0]);
    assert_int_equal(node->in[2], stk_graph_find(graph, STK_OP_input, "lr").id);
    assert_int_equal(find("fc.weight.velocity").id, -1);
    assert_int_equal(stk_graph_find(graph, STK_OP_input, "step").id, -1);
    assert_false(has_update("unused.weight"));
    assert_false(has_update("bn1.running_mean"));
    assert_int_equal(stk_graph_find_output(graph, "grad_norm").id, -1);
}

static void momentum(void **state)
{
    (void)state;
    stk_value lr = stk_graph_input(graph, "lr", STK_F32, (stk_shape){0}); /* It is found, not made again. */
    stk_optim_options options = {
        .optimizer = stk_sgd(.momentum = 0.9, .nesterov = true, .weight_decay = 5e-4, .like_keras = true)};
    build(&options);
    const stk_node *node = find_update("fc.bias", 0);
    assert_ptr_equal(node, find_update("fc.bias.velocity", 1));
    assert_int_equal(node->n_in, 4);
    assert_int_equal(node->in[1], find("fc.bias.velocity").id);
    assert_int_equal(node->in[3], lr.id);
    assert_true(node->attrs.sgd.momentum == 0.9 && node->attrs.sgd.weight_decay == 5e-4);
    assert_true(node->attrs.sgd.nesterov && node->attrs.sgd.like_keras);
    const stk_attrs *velocity = &stk_value_node(find("fc.bias.velocity"))->attrs;
    assert_true(velocity->leaf.init.kind == STK_INIT_CONSTANT && velocity->leaf.init.a == 0);
    assert_false(velocity->leaf.trainable);
}

static void adamw(void **state)
{
    (void)state;
    stk_optim_options options = {.optimizer = stk_adamw(), .no_decay = "bias"};
    build(&options);
    const stk_node *node = find_update("fc.weight", 0);
    assert_ptr_equal(node, find_update("fc.weight.m", 1));
    assert_ptr_equal(node, find_update("fc.weight.v", 2));
    assert_int_equal(node->n_in, 6);
    assert_int_equal(node->in[5], stk_graph_find(graph, STK_OP_input, "step").id);
    assert_int_equal(stk_value_dtype(stk_value_of(graph, node->in[5])), STK_I64);
    assert_true(node->attrs.adam.decoupled && node->attrs.adam.weight_decay == 0.01 && node->attrs.adam.eps == 1e-8);
    assert_true(find_update("fc.bias", 0)->attrs.adam.weight_decay == 0);
}

static void decay_like_keras_acts_on_the_parameter(void **state)
{
    (void)state;
    stk_optim_options options = {.optimizer = stk_adam(.weight_decay = 0.5, .like_keras = true)};
    build(&options);
    assert_true(find_update("fc.weight", 0)->attrs.adam.decoupled);
    tear_down(NULL);
    set_up(NULL);
    options.optimizer = stk_adam(.weight_decay = 0.5);
    build(&options);
    assert_false(find_update("fc.weight", 0)->attrs.adam.decoupled);
}

static void no_decay(void **state)
{
    (void)state;
    stk_optim_options options = {.optimizer = stk_sgd(.weight_decay = 0.5), .no_decay = " norm , fc.b,"};
    build(&options);
    assert_true(find_update("bn1.weight", 0)->attrs.sgd.weight_decay == 0);
    assert_true(find_update("bn1.bias", 0)->attrs.sgd.weight_decay == 0);
    assert_true(find_update("fc.bias", 0)->attrs.sgd.weight_decay == 0);
    assert_true(find_update("fc.weight", 0)->attrs.sgd.weight_decay == 0.5);
}

static void decay_may_be_none(void **state)
{
    (void)state;
    stk_optim_options options = {.optimizer = stk_adamw(.weight_decay = 0)};
    build(&options);
    assert_true(find_update("fc.weight", 0)->attrs.adam.weight_decay == 0);
}

static void clipping(void **state)
{
    (void)state;
    stk_optim_options options = {.optimizer = stk_sgd(), .clip_norm = 1};
    build(&options);
    assert_int_equal(stk_value_shape(stk_graph_find_output(graph, "grad_norm")).rank, 0);
    assert_int_equal(count(STK_OP_grad), 4);
    const stk_node *grad = stk_value_node(stk_value_of(graph, find_update("fc.weight", 0)->in[1]));
    assert_int_equal(grad->op, STK_OP_binary);
    assert_int_equal(grad->attrs.element.kind, STK_BINARY_mul);
}

static void f64_parameters(void **state)
{
    (void)state;
    stk_graph_free(graph);
    graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F64, STK_SHAPE(3), (stk_init){STK_INIT_NORMAL, 1}, true);
    stk_value s = stk_graph_variable(graph, "s", STK_F64, (stk_shape){0}, (stk_init){STK_INIT_NORMAL, 1}, true);
    loss = stk_reduce_sum(stk_mul(w, s), 0);
    stk_optim_options options = {.optimizer = stk_adam(), .clip_norm = 1};
    build(&options);
    assert_int_equal(stk_value_dtype(find("s.m")), STK_F64);
}

static void check_error(const stk_optim_options *options, const char *text)
{
    assert_int_equal(stk_optim_build(graph, loss, options), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
    assert_int_equal(stk_graph_status(graph), STK_INVALID); /* It is kept. */
    tear_down(NULL);
    set_up(NULL);
}

static void bad_options(void **state)
{
    (void)state;
    stk_optim_options options = {.optimizer = stk_sgd(.momentum = 1)};
    check_error(&options, "optimizer: momentum is 1, and must be in [0,1)");
    options.optimizer = stk_sgd(.nesterov = true);
    check_error(&options, "optimizer: nesterov needs a momentum");
    options.optimizer = stk_adam(.beta2 = 1.5);
    check_error(&options, "optimizer: beta2 is 1.5, and must be in [0,1)");
    options.optimizer = stk_adam(.eps = -1);
    check_error(&options, "optimizer: eps is -1, and must be 0 or more");
    options.optimizer = stk_adamw(.weight_decay = -1);
    check_error(&options, "optimizer: weight_decay is -1, and must be 0 or more");
    options.optimizer = stk_muon(.lr = 0);
    check_error(&options, "optimizer: lr is 0, and must be more than 0");
    options.optimizer = stk_optimizer_fill((stk_optimizer_kind)9, (stk_optimizer){0});
    check_error(&options, "optimizer: there is no kind 9");
    options = (stk_optim_options){.optimizer = stk_sgd(), .clip_norm = -1};
    check_error(&options, "the clipping norm is -1, and must be 0 or more");

    options.clip_norm = 0;
    loss = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4));
    check_error(&options, "the loss to train on is f32[4], and must be a float scalar");
    loss = stk_value_none(graph);
    check_error(&options, "the loss is no value of the graph");
    loss = stk_graph_input(graph, "x", STK_F32, (stk_shape){0});
    check_error(&options, "nothing to train: the loss depends on no trainable variable");
    stk_graph_input(graph, "lr", STK_F64, (stk_shape){0});
    check_error(&options, "input 'lr' is f64[], and must be f32[]");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(plain_sgd), CASE(momentum),          CASE(adamw),
        CASE(no_decay),  CASE(decay_may_be_none), CASE(decay_like_keras_acts_on_the_parameter),
        CASE(clipping),  CASE(f64_parameters),    CASE(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Layers, networks, losses and optimisers by their text: the same graphs as by their functions, and errors with places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stoker/nn/layers.h"
#include "stoker/nn/loss.h"
#include "stoker/nn/parse.h"
#include "stoker/train/optim.h"

static stk_value make_input(stk_graph *graph, int64_t width)
{
    return stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, width));
}

static void expect_same(stk_graph *a, stk_graph *b)
{
    assert_int_equal(stk_graph_status(a), STK_OK);
    assert_int_equal(stk_graph_status(b), STK_OK);
    char *x = stk_graph_print(a), *y = stk_graph_print(b);
    assert_string_equal(x, y);
    free(x);
    free(y);
    stk_graph_free(a);
    stk_graph_free(b);
}

static void they_are_their_functions(void **state)
{
    (void)state;
    stk_graph *a = stk_graph_new(), *b = stk_graph_new();
    stk_value y = stk_graph_input(a, "y", STK_I32, STK_SHAPE(4)), weight;
    stk_scope_push(a, "s");
    stk_value h =
        stk_layers_parse(make_input(a, 8), "[{dense: 16}, relu, {dropout: 0.5}, {dense: {units: 3, bias: false}}]");
    stk_scope_pop(a);
    stk_graph_output(a, "loss", stk_loss_parse(h, y, "{\"cross_entropy\": {\"smoothing\": 0.1}}", &weight));
    assert_int_equal(weight.id, -1);

    y = stk_graph_input(b, "y", STK_I32, STK_SHAPE(4));
    stk_scope_push(b, "s");
    h = stk_dropout(stk_relu(stk_dense(make_input(b, 8), 16)), 0.5);
    h = stk_dense_with(h, &(stk_dense_config){.units = 3, .no_bias = true});
    stk_scope_pop(b);
    stk_graph_output(b, "loss", stk_cross_entropy_smooth(h, y, 0.1));
    expect_same(a, b);
}

static void a_loss_says_what_samples_count_for(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value labels = stk_graph_input(graph, "y", STK_I32, STK_SHAPE(4)), weight;
    stk_value x = make_input(graph, 3), loss = stk_loss_parse(x, labels, "{cross_entropy: {ignore: -100}}", &weight);
    assert_int_equal(stk_graph_status(graph), STK_OK);
    assert_true(loss.id >= 0 && weight.id >= 0);
    assert_int_equal(stk_value_shape(weight).rank, 1);
    /* Nobody has to take it. */
    assert_true(stk_loss_parse(x, labels, "{cross_entropy: {ignore: -100}}", NULL).id > loss.id);
    stk_graph_free(graph);
}

static void networks_take_one_value(void **state)
{
    (void)state;
    stk_graph *a = stk_graph_new(), *b = stk_graph_new();
    stk_graph_output(a, "y", stk_network_parse(make_input(a, 8), 5, "{mlp: {hidden: [16]}}"));
    stk_graph_output(b, "y", stk_mlp(make_input(b, 8), (int64_t[]){16}, 1, 0, 5));
    expect_same(a, b);
    /* What it says itself comes first. */
    stk_graph *c = stk_graph_new();
    stk_value y = stk_network_parse(make_input(c, 8), 5, "{mlp: {hidden: [16], classes: 7}}");
    assert_int_equal(stk_value_shape(y).dim[1], 7);
    stk_graph_free(c);
}

static void expect_optimizer(const stk_optimizer *a, const stk_optimizer *b)
{
    const double x[] = {a->lr, a->weight_decay, a->momentum, a->beta1, a->beta2, a->eps},
                 y[] = {b->lr, b->weight_decay, b->momentum, b->beta1, b->beta2, b->eps};
    assert_int_equal(a->kind, b->kind);
    assert_memory_equal(x, y, sizeof(x));
    assert_int_equal(a->nesterov, b->nesterov);
    assert_int_equal(a->like_keras, b->like_keras);
}

static void optimisers_have_their_defaults(void **state)
{
    stk_optimizer o;
    (void)state;
    assert_int_equal(stk_optimizer_parse("{sgd: {lr: 0.25, nesterov: true, momentum: 0.9}}", &o), STK_OK);
    stk_optimizer wanted = stk_sgd(.lr = 0.25, .nesterov = true, .momentum = 0.9);
    expect_optimizer(&o, &wanted);
    assert_int_equal(stk_optimizer_parse("adamw", &o), STK_OK);
    wanted = stk_adamw_default();
    expect_optimizer(&o, &wanted);
    stk_optimizer before = o;
    assert_int_equal(stk_optimizer_parse("{sgd: {lr: -1}}", &o), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "optimizer:1:12"));
    expect_optimizer(&o, &before);
    assert_int_equal(stk_optimizer_parse(NULL, &o), STK_INVALID);
    assert_int_equal(stk_optimizer_parse("sgd", NULL), STK_INVALID);
}

static void refuse(stk_value (*build)(stk_value x, const char *text), const char *text, const char *wanted)
{
    stk_graph *graph = stk_graph_new();
    stk_value y = build(make_input(graph, 8), text);
    assert_int_equal(y.id, -1);
    assert_ptr_equal(y.graph, graph);
    assert_int_not_equal(stk_graph_status(graph), STK_OK);
    if (!strstr(stk_error_text(), wanted)) fail_msg("'%s' has no '%s'", stk_error_text(), wanted);
    stk_graph_free(graph);
}

static stk_value network(stk_value x, const char *text)
{
    return stk_network_parse(x, 0, text);
}

static stk_value loss(stk_value x, const char *text)
{
    return stk_loss_parse(x, x, text, NULL);
}

static void mistakes_have_a_place(void **state)
{
    (void)state;
    refuse(stk_layers_parse, NULL, "NULL");
    refuse(stk_layers_parse, "", "layer");
    refuse(stk_layers_parse, "[relu, {dens: 10}]", "layer:1:9: ");
    refuse(stk_layers_parse, "[{dense: 0}]", "layer:1:10: ");
    refuse(stk_layers_parse, "[relu, {conv2d: 4}]", "layer 'conv2d': its input is [4,8]");
    refuse(stk_layers_parse, "{from: nobody}", "nobody");
    refuse(stk_layers_parse, "[{name: a}, relu, {add: [b]}]", "'b'");
    refuse(network, "{mlp: {hidden: [4]}}", "classes");
    refuse(network, "{layers: [relu]}", "network:1:");
    refuse(network, "resnet19", "resnet1");
    refuse(loss, "masked_lm", "masked_lm");
    refuse(loss, "cross", "loss:1:");
    /* Of no value: nothing happens. */
    assert_int_equal(stk_layers_parse((stk_value){0}, "relu").id, -1);
    assert_int_equal(stk_network_parse((stk_value){0}, 1, "resnet18").id, -1);
    assert_int_equal(stk_loss_parse((stk_value){0}, (stk_value){0}, "mse", NULL).id, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_their_functions), cmocka_unit_test(a_loss_says_what_samples_count_for),
        cmocka_unit_test(networks_take_one_value),  cmocka_unit_test(optimisers_have_their_defaults),
        cmocka_unit_test(mistakes_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rules of attention and linear_cross_entropy: open batches, what is said of shapes that do not fit, and what passes
 * make of them. Values and gradients: tests/harness and tests/golden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "ops/rule.h"
#include "passes/passes.h"

static const stk_pass_options options = {0};

typedef struct heads {
    stk_graph *graph;
    stk_value q, k, v, mask, seed, sample, none;
} heads;

static heads open_heads(int64_t n, int64_t t, int64_t s)
{
    heads a = {.graph = stk_graph_new()};
    a.q = stk_graph_input(a.graph, "q", STK_F32, STK_SHAPE(n, t, 2, 8));
    a.k = stk_graph_input(a.graph, "k", STK_F32, STK_SHAPE(n, s, 2, 8));
    a.v = stk_graph_input(a.graph, "v", STK_F32, STK_SHAPE(n, s, 2, 8));
    a.mask = stk_graph_input(a.graph, "mask", STK_BOOL, STK_SHAPE(n, s));
    a.seed = stk_graph_input(a.graph, "seed", STK_I64, (stk_shape){.rank = 0});
    a.sample = stk_graph_input(a.graph, "sample", STK_I64, (stk_shape){.rank = 0});
    a.none = stk_value_none(a.graph);
    return a;
}

static int count_nodes(const stk_graph *graph, stk_op op)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == op;
    return n;
}

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s", stk_error_text());
}

static void the_batch_may_be_open(void **state)
{
    (void)state;
    heads a = open_heads(STK_ANY, 5, 7);
    stk_value y = stk_attention_raw(a.q, a.k, a.v, a.mask, a.seed, a.sample, (stk_attention){.dropout = 0.1});
    stk_graph_output(a.graph, "dq", stk_grad(stk_reduce_sum(y, 0), a.q));
    expect_ok(stk_graph_status(a.graph));
    stk_graph *bound = stk_graph_clone(a.graph, 3);
    assert_true(stk_shape_equal(stk_value_shape(stk_value_of(bound, y.id)), STK_SHAPE(3, 5, 2, 8)));
    assert_true(stk_shape_equal(stk_value_shape(stk_value_sibling(stk_value_of(bound, y.id), 1)), STK_SHAPE(3, 2, 5)));
    expect_ok(pass_autodiff(bound, &options));
    expect_ok(stk_graph_verify(bound));
    assert_int_equal(count_nodes(bound, STK_OP_attention_grad), 1);
    stk_graph_free(bound);
    stk_graph_free(a.graph);
}

static void expect_error(stk_graph *graph, const char *words)
{
    assert_int_equal(stk_graph_status(graph), STK_INVALID);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    stk_graph_free(graph);
}

static void errors_name_the_shapes(void **state)
{
    (void)state;
    heads a = open_heads(2, 5, 7);
    stk_attention_raw(a.q, a.k, a.q, a.none, a.none, a.none, (stk_attention){0});
    expect_error(a.graph, "v f32[2,5,2,8] does not fit q f32[2,5,2,8]: q is [N,T,H,D], k and v are [N,S,H,D]");
    a = open_heads(2, 5, 7);
    stk_attention_raw(a.k, a.q, a.q, a.mask, a.none, a.none, (stk_attention){0});
    expect_error(a.graph, "mask");
    a = open_heads(2, 5, 7);
    stk_attention_raw(a.q, a.k, a.v, a.none, a.seed, a.sample, (stk_attention){.dropout = 1.5});
    expect_error(a.graph, "dropout 1.5 must be between 0 and 1");
    a = open_heads(2, STK_ANY, 7);
    stk_attention_raw(a.q, a.k, a.v, a.none, a.none, a.none, (stk_attention){0});
    expect_error(a.graph, "may leave only the batch open");
    a.graph = stk_graph_new();
    stk_value flat = stk_graph_input(a.graph, "q", STK_F32, STK_SHAPE(2, 5, 2, 0)), none = stk_value_none(a.graph);
    stk_attention_raw(flat, flat, flat, none, none, none, (stk_attention){.scale = 1});
    expect_error(a.graph, "q [2,5,2,0] has heads of no size");
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
    stk_value labels = stk_graph_input(graph, "labels", STK_I32, STK_SHAPE(4));
    stk_linear_cross_entropy_raw(x, stk_transpose(x, (int32_t[]){1, 0}), labels, stk_linear_cross_entropy_default());
    expect_error(graph, "weight f32[3,4] does not fit x f32[4,3]");
}

/* Passes make this node of a loss that fits; a graph that is read from a file may hold another. */
static void the_gradient_of_a_loss_looks_at_its_inputs(void **state)
{
    (void)state;
    stk_attrs attrs = stk_attrs_zero();
    for (int side = 3; side <= 4; side++) {
        stk_graph *graph = stk_graph_new();
        stk_value in[4] = {stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3)),
                           stk_graph_input(graph, "weight", STK_F32, STK_SHAPE(9, side)),
                           stk_graph_input(graph, "labels", STK_I32, STK_SHAPE(4)),
                           stk_graph_input(graph, "dloss", STK_F32, STK_SHAPE(4))};
        stk_rule_add(STK_OP_linear_cross_entropy_grad, &attrs, in, 4);
        if (side == 4) {
            expect_error(graph, "weight f32[9,4] does not fit x f32[4,3]");
        } else {
            expect_ok(stk_graph_status(graph));
            stk_graph_free(graph);
        }
    }
}

/* For evaluation there is no dropout, and nothing asks for a seed. */
static void inference_takes_dropout_out(void **state)
{
    (void)state;
    heads a = open_heads(2, 5, 7);
    stk_graph_output(a.graph, "y",
                     stk_attention_raw(a.q, a.k, a.v, a.mask, a.seed, a.sample, (stk_attention){.dropout = 0.1}));
    expect_ok(pass_inference(a.graph, &options));
    expect_ok(stk_graph_verify(a.graph));
    assert_int_equal(count_nodes(a.graph, STK_OP_attention), 1);
    assert_int_equal(stk_graph_find(a.graph, STK_OP_input, "seed").id, -1);
    assert_true(stk_graph_find(a.graph, STK_OP_input, "mask").id >= 0);
    stk_graph_free(a.graph);
}

/* The loss comes from the gradient's run over the logits, unless that needs the loss first. */
static void logits_are_made_once(void **state)
{
    (void)state;
    for (int needs_loss = 0; needs_loss < 2; needs_loss++) {
        stk_graph *graph = stk_graph_new();
        stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
        stk_value weight = stk_graph_input(graph, "weight", STK_F32, STK_SHAPE(9, 3));
        stk_value labels = stk_graph_input(graph, "labels", STK_I32, STK_SHAPE(4));
        stk_value loss = stk_linear_cross_entropy_raw(x, weight, labels, stk_linear_cross_entropy_default());
        loss = stk_reduce_mean(needs_loss ? stk_square(loss) : loss, 0);
        stk_graph_output(graph, "loss", loss);
        stk_graph_output(graph, "dx", stk_grad(loss, x));
        stk_graph_output(graph, "dweight", stk_grad(loss, weight));
        expect_ok(pass_autodiff(graph, &options));
        expect_ok(pass_simplify(graph, &options));
        expect_ok(pass_fuse_loss(graph, &options));
        expect_ok(stk_graph_verify(graph));
        assert_int_equal(count_nodes(graph, STK_OP_linear_cross_entropy_grad), 1);
        assert_int_equal(count_nodes(graph, STK_OP_linear_cross_entropy), needs_loss);
        stk_graph_free(graph);
    }
}

/* Its statistics are outputs for its own gradient, and have none. */
static void statistics_of_layer_norm_have_no_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        stk_graph *graph = stk_graph_new();
        stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
        stk_value scale = stk_graph_input(graph, "scale", STK_F32, STK_SHAPE(3));
        stk_value bias = stk_graph_input(graph, "bias", STK_F32, STK_SHAPE(3));
        stk_value y = stk_value_sibling(stk_layer_norm_raw(x, scale, bias, 1e-5), i);
        while (stk_value_shape(y).rank > 0)
            y = stk_reduce_sum(y, 0);
        stk_graph_output(graph, "dx", stk_grad(y, x));
        assert_int_equal(pass_autodiff(graph, &options), i == 0 ? STK_OK : STK_UNSUPPORTED);
        stk_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_batch_may_be_open),
        cmocka_unit_test(errors_name_the_shapes),
        cmocka_unit_test(the_gradient_of_a_loss_looks_at_its_inputs),
        cmocka_unit_test(inference_takes_dropout_out),
        cmocka_unit_test(logits_are_made_once),
        cmocka_unit_test(statistics_of_layer_norm_have_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

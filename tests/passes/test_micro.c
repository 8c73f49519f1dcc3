/* The passes that micro-batches need, by their effect on a small graph: accumulate and carry. That losses stay
 * the same is tests/train/test_fit.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/query.h"
#include "passes/passes.h"

enum { BATCH = 8, N_MICRO = 4, WIDTH = 6, WORDS = 9 };
static const stk_pass_options options = {.n_micro = N_MICRO};

static int count_nodes(const stk_graph *graph, stk_op op)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n += graph->node[i].op == op;
    return n;
}

static const stk_node *find_node(const stk_graph *graph, stk_op op)
{
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == op) return &graph->node[i];
    fail_msg("no '%s'", stk_op_name(op));
    return NULL;
}

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* The loss of a vocabulary whose weight is trained, on one micro-batch. */
static stk_graph *make_graph(void)
{
    stk_graph *graph = stk_graph_new();
    stk_init one = {STK_INIT_CONSTANT, 1};
    stk_value weight = stk_graph_variable(graph, "weight", STK_F32, STK_SHAPE(WORDS, WIDTH), one, true);
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(STK_ANY, WIDTH));
    stk_value labels = stk_graph_input(graph, "label", STK_I32, STK_SHAPE(STK_ANY));
    stk_value seed = stk_graph_scalar_input(graph, "seed", STK_I64);
    stk_value sample = stk_graph_scalar_input(graph, "sample", STK_I64);
    x = stk_dropout_raw(x, seed, sample, 0.5, 1);
    stk_value loss = stk_linear_cross_entropy_raw(x, weight, labels, stk_linear_cross_entropy_default());
    loss = stk_mul(stk_reduce_sum(loss, 0), stk_graph_constant(graph, STK_F32, (stk_shape){0}, 1.0 / BATCH));
    stk_graph_output(graph, "loss", loss);
    stk_graph_output(graph, "size", stk_reduce_sum(stk_square(weight), 0));
    stk_graph_update(graph, weight, stk_sub(weight, stk_grad(loss, weight)));
    stk_graph *bound = stk_graph_clone(graph, BATCH / N_MICRO);
    assert_non_null(bound);
    stk_graph_free(graph);
    return bound;
}

/* The gradient and the loss become sums; what depends on no sample does not, and dropout draws by the batch's rows. */
static void accumulate_adds_up_what_varies(void **state)
{
    (void)state;
    stk_graph *graph = make_graph();
    expect_ok(pass_accumulate(graph, &options));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_accumulate), 2);
    for (int i = 0; i < graph->n_roots; i++) {
        const stk_node *made = &graph->node[graph->value[graph->root[i].value].node];
        bool is_loss = graph->root[i].name && !strcmp(graph->root[i].name, "loss");
        assert_int_equal(made->op == STK_OP_accumulate, is_loss);
    }
    const stk_node *dropout = find_node(graph, STK_OP_dropout);
    assert_int_equal(graph->node[graph->value[dropout->in[2]].node].op, STK_OP_binary); /* sample + row */
    stk_graph_free(graph);
}

static void one_batch_needs_no_sums(void **state)
{
    (void)state;
    stk_graph *graph = make_graph();
    int32_t n = graph->n_nodes;
    expect_ok(pass_accumulate(graph, &(stk_pass_options){.n_micro = 1}));
    expect_ok(pass_carry(graph, &(stk_pass_options){.n_micro = 1}));
    assert_int_equal(graph->n_nodes, n);
    stk_graph_free(graph);
}

/* Strict sums have a level for each doubling, and are not added in place. */
static void strict_sums_are_trees(void **state)
{
    (void)state;
    stk_graph *graph = make_graph();
    const stk_pass_options strict = {.n_micro = 8, .strict_rows = BATCH / 8};
    expect_ok(pass_accumulate(graph, &strict));
    expect_ok(pass_autodiff(graph, &strict));
    expect_ok(pass_simplify(graph, &strict));
    expect_ok(pass_carry(graph, &strict));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_carry), 0);
    assert_int_equal(count_nodes(graph, STK_OP_accumulate), 2);
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_accumulate) assert_int_equal(graph->node[i].n_out, 3);
    stk_graph_free(graph);
}

/* The vocabulary's gradient is added where its sum lies. */
static void carry_adds_in_place(void **state)
{
    (void)state;
    stk_graph *graph = make_graph();
    expect_ok(pass_accumulate(graph, &options));
    expect_ok(pass_autodiff(graph, &options));
    expect_ok(pass_simplify(graph, &options));
    expect_ok(pass_fuse_loss(graph, &options));
    expect_ok(pass_carry(graph, &options));
    expect_ok(stk_graph_verify(graph));
    assert_int_equal(count_nodes(graph, STK_OP_carry), 1);
    const stk_node *made = find_node(graph, STK_OP_linear_cross_entropy_grad);
    assert_int_equal(made->n_in, 5);
    assert_int_equal(graph->node[graph->value[made->in[4]].node].op, STK_OP_carry);
    int n_in_place = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n_in_place += graph->node[i].op == STK_OP_accumulate && graph->node[i].attrs.accumulate.in_place;
    assert_int_equal(n_in_place, 1);
    stk_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accumulate_adds_up_what_varies), cmocka_unit_test(strict_sums_are_trees),
        cmocka_unit_test(one_batch_needs_no_sums), cmocka_unit_test(carry_adds_in_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

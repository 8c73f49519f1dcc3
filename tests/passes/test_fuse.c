/* Groups that end in a reduction: which are made, that a value nobody else reads is never stored, and what is printed.
 * What groups compute is tests/harness/cases_fused.c's, and tests/device/cpu/test_cpu_reduce.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/fused.h"
#include "passes/passes.h"
#include "stoker/nn/nn.h"

static const stk_pass_options options = {0};

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

/* The only group. */
static const stk_fused *find_group(const stk_graph *graph)
{
    assert_int_equal(count_nodes(graph, STK_OP_fused), 1);
    for (int i = 0;; i++)
        if (graph->node[i].op == STK_OP_fused) return graph->node[i].attrs.fused.program;
}

static void fuse(stk_graph *graph)
{
    expect_ok(stk_graph_status(graph));
    expect_ok(pass_fuse(graph, &options));
    expect_ok(stk_graph_verify(graph));
}

/* One reduction of |x|, of which exp or nothing is an output as well. Returns the graph after fuse. */
static stk_graph *reduce_one(stk_dtype dtype, stk_shape shape, stk_value (*reduce)(stk_value, uint32_t), uint32_t axes,
                             bool is_stored)
{
    stk_graph *graph = stk_graph_new();
    stk_value y = stk_abs(stk_graph_input(graph, "x", dtype, shape));
    if (is_stored) stk_graph_output(graph, "y", y);
    stk_graph_output(graph, "sum", reduce(y, axes));
    fuse(graph);
    return graph;
}

static void groups_take_a_reduction(void **state)
{
    static const struct {
        stk_dtype dtype;
        int64_t rows, columns;
        stk_value (*reduce)(stk_value, uint32_t);
        uint32_t axes;
        bool is_stored, is_taken;
    } cases[] = {
        {STK_F32, 30, 40, stk_reduce_sum, 3, false, true},
        {STK_F32, 30, 40, stk_reduce_mean, 3, true, true},
        {STK_F32, 0, 40, stk_reduce_sum, 3, false, true},
        {STK_F32, 30, 40, stk_reduce_max, 2, false, true},
        {STK_F64, 30, 40, stk_reduce_min, 2, true, true},
        {STK_BF16, 30, 40, stk_reduce_sum, 2, false, true},
        {STK_F32, 4096, 512, stk_reduce_sum, 1, true, true}, /* 8 MiB */
        /* Short rows; columns that are few, of little memory, of 16 bits, or of a value that nothing else reads. */
        {STK_F32, 30, 31, stk_reduce_sum, 2, false, false},
        {STK_F32, 1 << 18, 16, stk_reduce_sum, 1, true, false},
        {STK_F32, 4096, 511, stk_reduce_sum, 1, true, false},
        {STK_F32, 4096, 512, stk_reduce_sum, 1, false, false},
        {STK_F32, 512, 4097, stk_reduce_sum, 1, true, false},
        {STK_BF16, 8192, 512, stk_reduce_sum, 1, true, false},
        /* What devices are not asked for. */
        {STK_F32, 30, 40, stk_reduce_prod, 3, false, false},
        {STK_BF16, 30, 40, stk_reduce_max, 3, false, false},
        {STK_I32, 30, 40, stk_reduce_sum, 3, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        stk_graph *graph = reduce_one(cases[i].dtype, STK_SHAPE(cases[i].rows, cases[i].columns), cases[i].reduce,
                                      cases[i].axes, cases[i].is_stored);
        if (count_nodes(graph, STK_OP_reduce) != !cases[i].is_taken) fail_msg("case %d", (int)i);
        assert_int_equal(count_nodes(graph, STK_OP_unary), !cases[i].is_taken);
        if (cases[i].is_taken) {
            assert_int_equal(find_group(graph)->n_out, cases[i].is_stored);
            assert_int_equal(find_group(graph)->reduce.axes, cases[i].axes);
        }
        stk_graph_free(graph);
    }
}

/* Neither first nor last axes; axes of length 1 do not matter. */
static void axes_in_the_middle_stay(void **state)
{
    (void)state;
    stk_graph *graph = reduce_one(STK_F32, STK_SHAPE(4, 50, 60), stk_reduce_sum, 2, false);
    assert_int_equal(count_nodes(graph, STK_OP_reduce), 1);
    stk_graph_free(graph);
    graph = reduce_one(STK_F32, STK_SHAPE(4, 50, 1), stk_reduce_sum, 2, false);
    assert_int_equal(count_nodes(graph, STK_OP_reduce), 0);
    stk_graph_free(graph);
}

/* Of two, a group takes the one that lets it store nothing; the other reads what is stored. */
static void unread_values_come_first(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value y = stk_exp(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(30, 40)));
    stk_graph_output(graph, "y", y);
    stk_graph_output(graph, "sum", stk_reduce_sum(y, 3));
    stk_graph_output(graph, "squares", stk_reduce_sum(stk_square(y), 2));
    fuse(graph);
    assert_int_equal(count_nodes(graph, STK_OP_reduce), 1);
    assert_int_equal(find_group(graph)->n_out, 1);
    assert_int_equal(find_group(graph)->reduce.axes, 2);
    stk_graph_free(graph);
}

/* exp(x) / sum(exp(x)): what the sum makes is read by a second group, which cannot be the first. */
static void what_is_reduced_is_read_later(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value y = stk_exp(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(30, 40)));
    stk_value sum = stk_reshape(stk_reduce_sum(y, 2), STK_SHAPE(30, 1));
    stk_graph_output(graph, "y", stk_sqrt(stk_div(y, sum)));
    fuse(graph);
    assert_int_equal(count_nodes(graph, STK_OP_fused), 2);
    assert_int_equal(count_nodes(graph, STK_OP_reduce), 0);
    stk_graph_free(graph);
}

static void reductions_are_printed(void **state)
{
    (void)state;
    stk_graph *graph = reduce_one(STK_F32, STK_SHAPE(4, 5, 40), stk_reduce_mean, 6, true);
    char *text = stk_graph_print(graph);
    assert_non_null(text);
    assert_non_null(strstr(text, "v1, v2 = fused v0 {abs mean}  # f32[4,5,40] f32[4]\n"));
    assert_non_null(strstr(text, "      gives r1 and mean r1 axes=1,2\n"));
    free(text);
    stk_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_take_a_reduction),  cmocka_unit_test(axes_in_the_middle_stay),
        cmocka_unit_test(unread_values_come_first), cmocka_unit_test(what_is_reduced_is_read_later),
        cmocka_unit_test(reductions_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

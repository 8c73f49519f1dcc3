/* Compositions: every case of an op that has one, decomposed down to primitives on the reference device, against the
 * op's own kernel; which ops are primitives; and that no pass touches what a device has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "harness/harness.h"
#include "harness/run_graph.h"
#include "passes/passes.h"

static stk_device *reference;
static const stk_device_caps no_caps = {.capture = false};

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* --- which ops are primitives --- */

/* Made by passes alone, for devices that have them; or gone when devices are asked. */
static bool is_of_passes(stk_op op)
{
    bool is_between_devices = op == STK_OP_copy_to || op == STK_OP_all_reduce || stk_op_is_of_ranks((stk_op)op);
    return op == STK_OP_grad || op == STK_OP_carry || op == STK_OP_fused || is_between_devices;
}

static void what_is_no_primitive_has_a_composition(void **state)
{
    (void)state;
    int n_kernels = 0;
    for (int op = 0; op < STK_N_OPS; op++) {
        bool is_primitive = stk_op_is_primitive((stk_op)op), is_leaf = op == STK_OP_input || op == STK_OP_variable;
        bool has = stk_op_get_rule((stk_op)op)->decompose;
        if (has == (is_primitive || is_of_passes((stk_op)op)))
            fail_msg("'%s' must be a primitive or have a composition, and not both", stk_op_name((stk_op)op));
        n_kernels += is_primitive && !is_leaf;
    }
    assert_int_equal(n_kernels, 22);
}

/* --- values --- */

/* A graph of the one op, whose outputs are y0, y1, ...; its inputs x0, x1, ... */
static stk_graph *make_graph(const case_run *run)
{
    stk_graph *graph = stk_graph_new();
    stk_value in[CASE_MOST_IN];
    char name[16];
    for (int i = 0; i < run->call.n_in; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        in[i] = stk_graph_input(graph, name, run->in_desc[i].dtype, run->in_desc[i].shape);
    }
    stk_value y = stk_graph_add(graph, run->call.op, &run->attrs, in, run->call.n_in);
    for (int i = 0; i < run->call.n_out; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        stk_graph_output(graph, name, stk_value_sibling(y, i));
    }
    return graph;
}

static const char *find_other_op(const stk_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++)
        if (!stk_op_is_primitive(graph->node[i].op)) return stk_op_name(graph->node[i].op);
    return NULL;
}

/* A product with a weight of 0 of what is not finite is NaN; the op itself skips such keys, labels or rows. */
static bool is_beyond(const op_case *source)
{
    return source->op == STK_OP_cached_attention && !strcmp(source->name, "special values");
}

/* Within what a device's kernel of the op may be off. */
static bool compare_case(const op_case *source, stk_dtype main)
{
    case_run run;
    graph_run decomposed = {0};
    void *want[CASE_MOST_OUT] = {0};
    char name[16];
    bool is_right = true;
    expect_ok(case_run_open(source, main, reference, &run));
    expect_ok(case_call(&run, reference, CASE_APART, want, NULL));
    stk_graph *graph = make_graph(&run);
    expect_ok(pass_decompose(graph, &(stk_pass_options){.caps = &no_caps}));
    expect_ok(stk_graph_verify(graph));
    const char *other = find_other_op(graph);
    if (other) fail_msg("%s: '%s' is left", case_text(&run), other);
    expect_ok(graph_run_open(graph, reference, &decomposed));
    for (int i = 0; i < run.call.n_in; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        void *to = graph_run_leaf(&decomposed, name);
        if (to) memcpy(to, run.in[i], stk_desc_bytes(run.in_desc[i]));
    }
    if (graph_run_all(&decomposed) != STK_OK) fail_msg("%s: %s", case_text(&run), stk_error_text());
    for (int i = 0; i < run.call.n_out; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        const char *difference = case_compare(&run, i, graph_run_output(&decomposed, name), want[i]);
        if (difference) print_message("%s decomposed: %s\n", case_text(&run), difference);
        is_right &= !difference;
    }
    graph_run_close(&decomposed);
    stk_graph_free(graph);
    for (int i = 0; i < CASE_MOST_OUT; i++)
        free(want[i]);
    case_run_close(&run);
    return is_right;
}

static void compositions_have_the_ops_values(void **state)
{
    (void)state;
    int n_lists, n_compared = 0, n_wrong = 0;
    const case_list *lists = harness_case_lists(&n_lists);
    for (int l = 0; l < n_lists; l++) {
        for (int i = 0; i < lists[l].n; i++) {
            const op_case *source = &lists[l].cases[i];
            if (source->large || is_beyond(source) || !stk_op_get_rule(source->op)->decompose) continue;
            for (int d = 0; d < STK_N_DTYPES; d++) {
                if (!(case_mains(source) >> d & 1)) continue;
                n_wrong += !compare_case(source, (stk_dtype)d);
                n_compared++;
            }
        }
    }
    print_message("%d compositions compared, %d wrong\n", n_compared, n_wrong);
    assert_true(n_compared > 500);
    assert_int_equal(n_wrong, 0);
}

/* --- what is refused, as the op does --- */

static stk_status run_classes(int32_t label)
{
    stk_graph *graph = stk_graph_new();
    stk_value logits = stk_graph_input(graph, "logits", STK_F32, STK_SHAPE(2, 3));
    stk_value labels = stk_graph_input(graph, "labels", STK_I32, STK_SHAPE(2));
    stk_graph_output(graph, "loss", stk_cross_entropy_raw(logits, labels, 0));
    graph_run run;
    expect_ok(pass_decompose(graph, &(stk_pass_options){.caps = &no_caps}));
    expect_ok(graph_run_open(graph, reference, &run));
    memcpy(graph_run_leaf(&run, "labels"), (int32_t[]){0, label}, 2 * sizeof(label));
    stk_status status = graph_run_all(&run);
    graph_run_close(&run);
    stk_graph_free(graph);
    return status;
}

static void wrong_labels_fail_the_run(void **state)
{
    (void)state;
    expect_ok(run_classes(2));
    assert_int_not_equal(run_classes(3), STK_OK);
    assert_int_not_equal(run_classes(-1), STK_OK);
}

static void devices_that_have_all_keep_all(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(2, 3));
    stk_graph_output(graph, "y", stk_softmax(stk_add(x, x)));
    char *before = stk_graph_print(graph);
    expect_ok(pass_decompose(graph, NULL));
    expect_ok(pass_decompose(graph, &(stk_pass_options){.caps = reference->caps}));
    char *after = stk_graph_print(graph);
    assert_string_equal(before, after);
    free(before);
    free(after);
    stk_graph_free(graph);
}

/* One op lacking: nothing else is touched, and what it is made of may be kept whole. */
static void only_what_lacks_is_made(void **state)
{
    (void)state;
    stk_device_caps caps = stk_device_caps_all;
    caps.has[STK_OP_linear_cross_entropy] = false;
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4, 3));
    stk_value w = stk_graph_input(graph, "w", STK_F32, STK_SHAPE(5, 3));
    stk_value labels = stk_graph_input(graph, "labels", STK_I32, STK_SHAPE(4));
    stk_linear_cross_entropy options = stk_linear_cross_entropy_default();
    stk_graph_output(graph, "loss", stk_linear_cross_entropy_raw(stk_softmax(x), w, labels, options));
    expect_ok(pass_decompose(graph, &(stk_pass_options){.caps = &caps}));
    char *text = stk_graph_print(graph);
    assert_non_null(strstr(text, "= softmax"));
    assert_non_null(strstr(text, "= cross_entropy"));
    assert_non_null(strstr(text, "= matmul"));
    assert_null(strstr(text, "linear_cross_entropy"));
    free(text);
    stk_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_primitive_has_a_composition),
        cmocka_unit_test(compositions_have_the_ops_values),
        cmocka_unit_test(wrong_labels_fail_the_run),
        cmocka_unit_test(devices_that_have_all_keep_all),
        cmocka_unit_test(only_what_lacks_is_made),
    };
    if (stk_device_open("reference", NULL, &reference) != STK_OK) {
        fprintf(stderr, "%s\n", stk_error_text());
        return 1;
    }
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    stk_device_close(reference);
    return n_failed;
}

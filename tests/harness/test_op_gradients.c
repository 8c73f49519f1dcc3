/* Every op's gradient rule against central differences, in f64 on the reference device.
 *
 * The op's outputs are weighted by random numbers and added up to one scalar; grad nodes ask for its derivatives, the
 * autodiff pass replaces them, and that graph runs once. One of the scalar alone runs twice for each element that is
 * moved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "harness/harness.h"
#include "harness/run_graph.h"
#include "passes/passes.h"

enum { MOST_ELEMENTS = 40, FEW_ELEMENTS = 4, MANY = 20000 }; /* of each input that are moved; few where it holds many */

static stk_device *reference;
static int n_checked[STK_N_OPS];

static bool is_checked_output(const op_case *source, int i)
{
    /* Means, deviations, running statistics, the log-sum-exp and gates carry no gradient. */
    if (source->op == STK_OP_gru || source->op == STK_OP_lstm) return i == 0 || (i == 1 && source->op == STK_OP_lstm);
    return i == 0 || (source->op != STK_OP_batch_norm && source->op != STK_OP_attention &&
                      source->op != STK_OP_layer_norm && source->op != STK_OP_group_norm);
}

/* The graph of one case: the scalar, and where asked for its derivatives. */
static stk_graph *build(const case_run *run, bool has_gradients)
{
    stk_graph *graph = stk_graph_new();
    stk_value in[CASE_MOST_IN], loss = {graph, -1};
    char name[16];
    for (int i = 0; i < run->call.n_in; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        in[i] = stk_graph_input(graph, name, run->in_desc[i].dtype, run->in_desc[i].shape);
    }
    stk_value y = stk_graph_add(graph, run->source->op, &run->attrs, in, run->call.n_in);
    for (int i = 0; i < run->call.n_out; i++) {
        if (!is_checked_output(run->source, i) || run->out_desc[i].dtype != STK_F64) continue;
        snprintf(name, sizeof(name), "r%d", i);
        stk_value weight = stk_graph_input(graph, name, STK_F64, run->out_desc[i].shape);
        stk_value part = stk_reduce_sum(stk_mul(stk_value_sibling(y, i), weight), 0);
        loss = loss.id < 0 ? part : stk_add(loss, part);
    }
    stk_graph_output(graph, "loss", loss);
    for (int i = 0; i < run->call.n_in; i++) {
        if (!has_gradients || !run->source->in[i].smooth) continue;
        snprintf(name, sizeof(name), "g%d", i);
        stk_graph_output(graph, name, stk_grad(loss, in[i]));
    }
    return graph;
}

static void fill(const case_run *run, graph_run *graph)
{
    char name[16];
    for (int i = 0; i < run->call.n_in; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        void *leaf = graph_run_leaf(graph, name);
        if (leaf) memcpy(leaf, run->in[i], stk_desc_bytes(run->in_desc[i]));
    }
    for (int i = 0; i < run->call.n_out; i++) {
        snprintf(name, sizeof(name), "r%d", i);
        double *weight = graph_run_leaf(graph, name);
        for (int64_t j = 0, n = stk_shape_count(run->out_desc[i].shape); weight && j < n; j++)
            weight[j] = 2 * harness_random(77 + (uint64_t)i, (uint64_t)j) - 1;
    }
}

/* The loss with element j of leaf moved by delta. */
static stk_status loss_at(graph_run *graph, double *leaf, int64_t j, double delta, double *out)
{
    double kept = leaf[j];
    leaf[j] = kept + delta;
    stk_status status = graph_run_all(graph);
    leaf[j] = kept;
    *out = *(double *)graph_run_output(graph, "loss");
    return status;
}

/* The differences of losses for one input beside gradients, which have been run; the number of elements that do not
 * fit. */
static int check_input(const case_run *run, const graph_run *gradients, graph_run *losses, int i)
{
    char name[16];
    stk_tensor_desc desc = run->in_desc[i];
    int64_t n = stk_shape_count(desc.shape), most = n > MANY ? FEW_ELEMENTS : MOST_ELEMENTS,
            n_moved = n < most ? n : most;
    int n_wrong = 0;
    snprintf(name, sizeof(name), "g%d", i);
    const double *gradient = graph_run_output(gradients, name);
    double size = 0;
    for (int64_t j = 0; j < n; j++)
        size = fmax(size, fabs(gradient[j]));
    snprintf(name, sizeof(name), "x%d", i);
    double *leaf = graph_run_leaf(losses, name);
    for (int64_t k = 0; k < n_moved; k++) {
        int64_t j = n <= MOST_ELEMENTS ? k : (int64_t)(harness_random(5, (uint64_t)k) * (double)n);
        double plus = 0, minus = 0, step = 1e-5;
        assert_non_null(leaf);
        assert_int_equal(loss_at(losses, leaf, j, step, &plus), STK_OK);
        assert_int_equal(loss_at(losses, leaf, j, -step, &minus), STK_OK);
        double difference = (plus - minus) / (2 * step);
        if (fabs(difference - gradient[j]) <= 1e-6 * (1 + size)) continue;
        print_message("%s: input %d, element %lld: the rule says %.9g, differences %.9g\n", case_text(run), i,
                      (long long)j, gradient[j], difference);
        n_wrong++;
    }
    return n_wrong;
}

/* Opens the graph of one case with its leaves filled; the caller closes values and frees the graph, also after a
 * failure. */
static stk_status open_graph(const case_run *run, bool has_gradients, stk_graph **graph, graph_run *values)
{
    stk_status status = STK_OK;
    *graph = build(run, has_gradients);
    if (has_gradients) STK_TRY(pass_autodiff(*graph, &(stk_pass_options){0}));
    STK_TRY(stk_graph_verify(*graph));
    STK_TRY(graph_run_open(*graph, reference, values));
    fill(run, values);
done:
    return status;
}

/* The number of inputs or elements that are wrong. */
static int check_case(const op_case *source)
{
    case_run run = {0};
    graph_run values[2] = {{0}};
    stk_graph *graphs[2] = {NULL};
    stk_status status = STK_OK;
    int n_wrong = 0;
    STK_TRY(case_run_open(source, STK_F64, reference, &run));
    for (int i = 0; i < 2; i++)
        STK_TRY(open_graph(&run, i == 1, &graphs[i], &values[i]));
    STK_TRY(graph_run_all(&values[1]));
    for (int i = 0; i < run.call.n_in; i++)
        if (source->in[i].smooth) n_wrong += check_input(&run, &values[1], &values[0], i);
    n_checked[source->op]++;
done:
    if (status != STK_OK) {
        print_message("%s: %s\n", case_text(&run), stk_error_text());
        n_wrong++;
    }
    for (int i = 0; i < 2; i++) {
        graph_run_close(&values[i]);
        stk_graph_free(graphs[i]);
    }
    case_run_close(&run);
    return n_wrong;
}

static bool is_checkable(const op_case *source)
{
    const stk_op_rule *rule = stk_op_get_rule(source->op);
    bool any = false;
    for (int i = 0; i < source->n_in; i++) {
        if (source->in[i].fill == FILL_SPECIAL || source->in[i].fill == FILL_RARE) return false; /* no differences */
        any |= source->in[i].smooth;
    }
    return any && rule->grad && !rule->stops_gradient && !source->large && (case_mains(source) >> STK_F64 & 1);
}

static void rules_match_differences(void **state)
{
    (void)state;
    int n_lists, n_wrong = 0, n_cases = 0;
    const case_list *lists = harness_case_lists(&n_lists);
    for (int l = 0; l < n_lists; l++) {
        for (int i = 0; i < lists[l].n; i++) {
            if (!is_checkable(&lists[l].cases[i])) continue;
            n_wrong += check_case(&lists[l].cases[i]);
            n_cases++;
        }
    }
    print_message("%d cases checked, %d elements wrong\n", n_cases, n_wrong);
    assert_int_equal(n_wrong, 0);
}

static void every_rule_is_checked(void **state)
{
    (void)state;
    for (int op = 0; op < STK_N_OPS; op++) {
        if (!stk_op_get_rule((stk_op)op)->grad || n_checked[op] || stk_op_is_of_ranks((stk_op)op)) continue;
        print_message("the gradient rule of '%s' has no case\n", stk_op_name((stk_op)op));
        fail();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_match_differences),
        cmocka_unit_test(every_rule_is_checked),
    };
    if (stk_device_open("reference", NULL, &reference) != STK_OK) {
        fprintf(stderr, "%s\n", stk_error_text());
        return 1;
    }
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    stk_device_close(reference);
    return n_failed;
}

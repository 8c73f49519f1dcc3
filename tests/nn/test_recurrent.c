/* Recurrent layers compared with PyTorch's: outputs, last states, gradients, padded sequences; names, sizes, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "golden/recurrent_golden.h"
#include "graph/query.h"
#include "harness/run_graph.h"
#include "passes/passes.h"
#include "stoker/nn/recurrent.h"

enum { N = 3, T = 5, C = 4, H = 3 };
static const int lengths[N] = {5, 2, 4};

/* As make_recurrent.py has it. */
static double wave(double frequency, int64_t k, double phase)
{
    return 0.5 * sin(frequency * (double)k + phase);
}

static stk_value make_wave(stk_graph *graph, const char *name, stk_shape shape)
{
    return stk_graph_input(graph, name, STK_F64, shape);
}

static void fill_wave(const graph_run *run, const char *name, double factor, double frequency, double phase)
{
    stk_value x = stk_graph_find(run->graph, STK_OP_input, name);
    if (x.id < 0) x = stk_graph_find(run->graph, STK_OP_variable, name);
    double *data = graph_run_leaf(run, name);
    for (int64_t k = 0; k < stk_shape_count(run->graph->value[x.id].desc.shape); k++)
        data[k] = factor * wave(frequency, k, phase);
}

/* Names of the variables in their order, which is PyTorch's. */
static int list_variables(const stk_graph *graph, const char *names[32])
{
    int n = 0;
    for (int32_t i = 0; i < graph->n_nodes && n < 32; i++)
        if (graph->node[i].op == STK_OP_variable) names[n++] = graph->node[i].name;
    return n;
}

static void compare(const double *want, const double *have, int64_t n, const char *what, size_t i_case)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(want[i] - have[i]) < 1e-8))
            fail_msg("case %zu: %s[%d] is %.10g, not %.10g", i_case, what, (int)i, have[i], want[i]);
}

static void check_case(size_t i_case, const double *want)
{
    bool both = golden_cases[i_case].bidirectional;
    int64_t width = both ? 2 * H : H;
    const char *names[32];
    stk_graph *graph = stk_graph_new();
    stk_value x = make_wave(graph, "x", STK_SHAPE(N, T, C)), last;
    stk_value mask = stk_graph_input(graph, "mask", STK_BOOL, STK_SHAPE(N, T));
    stk_recurrent_config config = {.kind = golden_cases[i_case].is_gru ? STK_RECURRENT_GRU : STK_RECURRENT_LSTM,
                                   .units = H,
                                   .layers = golden_cases[i_case].layers,
                                   .bidirectional = both,
                                   .mask = golden_cases[i_case].masked ? &mask : NULL,
                                   .name = "net"};
    stk_value y = stk_recurrent(x, &config, &last);
    stk_value loss = stk_add(stk_reduce_sum(stk_mul(y, make_wave(graph, "dy", STK_SHAPE(N, T, width))), 0),
                             stk_reduce_sum(stk_mul(last, make_wave(graph, "dlast", STK_SHAPE(N, width))), 0));
    stk_graph_output(graph, "y", y);
    stk_graph_output(graph, "last", last);
    stk_graph_output(graph, "dx", stk_grad(loss, x));
    int n_variables = list_variables(graph, names);
    assert_int_equal(n_variables, 4 * golden_cases[i_case].layers * (both ? 2 : 1));
    for (int i = 0; i < n_variables; i++)
        stk_graph_output(graph, names[i], stk_grad(loss, stk_graph_find(graph, STK_OP_variable, names[i])));
    stk_pass_options options = {0};
    if (pass_autodiff(graph, &options) != STK_OK || stk_graph_status(graph) != STK_OK) fail_msg("%s", stk_error_text());

    stk_device *device;
    graph_run run;
    assert_int_equal(stk_device_open("reference", NULL, &device), STK_OK);
    if (graph_run_open(graph, device, &run) != STK_OK) fail_msg("%s", stk_error_text());
    fill_wave(&run, "x", 2, 0.9, 0.2);
    fill_wave(&run, "dy", 1, 0.3, 0);
    fill_wave(&run, "dlast", 1, 0.8, 1);
    for (int i = 0; i < n_variables; i++)
        fill_wave(&run, names[i], 1, 0.7, 1.3 * i);
    uint8_t *counts = graph_run_leaf(&run, "mask");
    for (int i = 0; counts && i < N * T; i++)
        counts[i] = i % T < lengths[i / T];
    if (graph_run_all(&run) != STK_OK) fail_msg("%s", stk_error_text());

    static const char *const results[] = {"y", "last", "dx"};
    const double *start = want;
    for (int i = 0; i < 3 + n_variables; i++) {
        const char *name = i < 3 ? results[i] : names[i - 3];
        int64_t n = stk_shape_count(stk_value_shape(stk_graph_find_output(graph, name)));
        compare(want, graph_run_output(&run, name), n, name, i_case);
        want += n;
    }
    assert_int_equal(want - start, golden_cases[i_case].n);
    graph_run_close(&run);
    stk_device_close(device);
    stk_graph_free(graph);
}

static void beside_torch(void **state)
{
    (void)state;
    const double *want = golden_values;
    for (size_t i = 0; i < sizeof(golden_cases) / sizeof(golden_cases[0]); i++) {
        check_case(i, want);
        want += golden_cases[i].n;
    }
}

static void names_and_sizes(void **state)
{
    (void)state;
    stk_model *model = stk_model_new("classifier");
    stk_value tokens = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(7));
    stk_recurrent_classifier config = {
        .recurrent = {.kind = STK_RECURRENT_GRU, .units = 6, .bidirectional = true, .layers = 2, .dropout = 0.1},
        .vocabulary = 50,
        .width = 8,
        .dropout = 0.2};
    stk_value logits = stk_classify_recurrent(tokens, &config, 3);
    stk_model_loss(model, stk_cross_entropy(logits, stk_model_label(model)));
    if (stk_model_status(model) != STK_OK) fail_msg("%s", stk_error_text());
    static const char *const want[] = {"embedding.weight",         "gru.weight_ih_l0",       "gru.weight_hh_l0",
                                       "gru.bias_ih_l0",           "gru.bias_hh_l0",         "gru.weight_ih_l0_reverse",
                                       "gru.weight_hh_l0_reverse", "gru.bias_ih_l0_reverse", "gru.bias_hh_l0_reverse",
                                       "gru.weight_ih_l1"};
    const char *names[32];
    assert_int_equal(list_variables(stk_model_graph(model), names), 1 + 4 * 4 + 2);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        assert_string_equal(names[i], want[i]);
    /* torch.nn.GRU(8, 6, 2, bidirectional=True) has 1,296 parameters. */
    assert_int_equal(stk_model_get_size(model).n_parameters, 50 * 8 + 1296 + 3 * 12 + 3);
    stk_model_free(model);
}

static void check_error(stk_shape shape, stk_dtype mask_dtype, stk_recurrent_config config, const char *text)
{
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, shape);
    stk_value mask = stk_graph_input(graph, "mask", mask_dtype, STK_SHAPE(2, 3));
    if (config.mask) config.mask = &mask;
    (void)stk_recurrent(x, &config, NULL);
    assert_int_not_equal(stk_graph_status(graph), STK_OK);
    if (!strstr(stk_error_text(), text)) fail_msg("%s", stk_error_text());
    stk_graph_free(graph);
}

static void errors(void **state)
{
    (void)state;
    stk_value any;
    check_error(STK_SHAPE(2, 3), STK_BOOL, (stk_recurrent_config){.units = 4}, "[N,T,C]");
    check_error(STK_SHAPE(2, 3, 4), STK_BOOL, (stk_recurrent_config){.units = 0}, "units is 0");
    check_error(STK_SHAPE(2, 3, 4), STK_F32, (stk_recurrent_config){.units = 4, .mask = &any}, "bool[N,T]");
    check_error(STK_SHAPE(2, 5, 4), STK_BOOL, (stk_recurrent_config){.units = 4, .mask = &any}, "bool[N,T]");
    check_error(STK_SHAPE(2, 5, 4), STK_BOOL, (stk_recurrent_config){.units = 4, .layers = 2, .dropout = 1.5}, "[0,1)");
}

/* --- many steps --- */

enum { LONG = 3000, LONG_N = 2, LONG_H = 5 };
static const char *const long_parameters[] = {"net.weight_ih_l0", "net.weight_hh_l0", "net.bias_ih_l0",
                                              "net.weight_hh_l0_reverse"};

/* The mean square of a bidirectional layer's outputs, with gradients. */
static stk_graph *build_long(stk_recurrent_kind kind, stk_dtype dtype, int64_t n_steps)
{
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", dtype, STK_SHAPE(LONG_N, n_steps, LONG_H));
    stk_recurrent_config config = {.kind = kind, .units = LONG_H, .bidirectional = true, .name = "net"};
    stk_value y = stk_recurrent(x, &config, NULL), loss = stk_reduce_mean(stk_mul(y, y), 0);
    stk_graph_output(graph, "x", stk_grad(loss, x));
    for (size_t i = 0; i < sizeof(long_parameters) / sizeof(long_parameters[0]); i++)
        stk_graph_output(graph, long_parameters[i],
                         stk_grad(loss, stk_graph_find(graph, STK_OP_variable, long_parameters[i])));
    if (pass_autodiff(graph, &(stk_pass_options){0}) != STK_OK || stk_graph_status(graph) != STK_OK)
        fail_msg("%s", stk_error_text());
    return graph;
}

static void open_long(stk_graph *graph, const char *device_name, stk_device **device, graph_run *run)
{
    assert_int_equal(stk_device_open(device_name, NULL, device), STK_OK);
    if (graph_run_open(graph, *device, run) != STK_OK) fail_msg("%s", stk_error_text());
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_input && node->op != STK_OP_variable) continue;
        stk_tensor_desc desc = graph->value[node->first_out].desc;
        void *data = graph_run_leaf(run, node->name);
        for (int64_t k = 0, n = stk_shape_count(desc.shape); k < n; k++) {
            double v = wave(0.7, k, 1.3 * i);
            if (desc.dtype == STK_F64)
                ((double *)data)[k] = (double)(float)v;
            else
                ((float *)data)[k] = (float)v;
        }
    }
    if (graph_run_all(run) != STK_OK) fail_msg("%s", stk_error_text());
}

/* In f32 on the cpu device, next to f64 on the reference device. */
static void many_steps(void **state)
{
    (void)state;
    for (int kind = STK_RECURRENT_LSTM; kind <= STK_RECURRENT_GRU; kind++) {
        stk_device *fast, *exact;
        graph_run run, oracle;
        stk_graph *graph = build_long((stk_recurrent_kind)kind, STK_F32, LONG);
        stk_graph *doubles = build_long((stk_recurrent_kind)kind, STK_F64, LONG);
        stk_graph *few = build_long((stk_recurrent_kind)kind, STK_F32, 3);
        assert_int_equal(graph->n_nodes, few->n_nodes);
        open_long(graph, "cpu", &fast, &run);
        open_long(doubles, "reference", &exact, &oracle);
        for (size_t i = 0; i < 5; i++) {
            const char *name = i ? long_parameters[i - 1] : "x";
            int64_t n = stk_shape_count(stk_value_shape(stk_graph_find_output(graph, name)));
            const float *have = graph_run_output(&run, name);
            const double *want = graph_run_output(&oracle, name);
            double most = 0, off = 0;
            for (int64_t k = 0; k < n; k++) {
                most = fmax(most, fabs(want[k]));
                off = fmax(off, fabs(want[k] - (double)have[k]));
            }
            if (!(most > 0 && off <= 1e-5 * most)) fail_msg("kind %d, %s: %g of %g off", kind, name, off, most);
        }
        graph_run_close(&run);
        graph_run_close(&oracle);
        stk_device_close(fast);
        stk_device_close(exact);
        stk_graph_free(graph);
        stk_graph_free(doubles);
        stk_graph_free(few);
    }
}

/* A device without the ops has up to 4,096 steps, one by one. */
static void devices_without_it(void **state)
{
    static const stk_device_caps none = {0};
    (void)state;
    for (int64_t n_steps = 4; n_steps <= 5000; n_steps += 4996) {
        stk_graph *graph = build_long(STK_RECURRENT_GRU, STK_F32, n_steps);
        stk_status status = pass_decompose(graph, &(stk_pass_options){.caps = &none});
        assert_int_equal(status, n_steps == 4 ? STK_OK : STK_UNSUPPORTED);
        if (n_steps > 4 && !strstr(stk_error_text(), "5000 steps")) fail_msg("%s", stk_error_text());
        stk_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(beside_torch), cmocka_unit_test(names_and_sizes),
                                       cmocka_unit_test(errors), cmocka_unit_test(many_steps),
                                       cmocka_unit_test(devices_without_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

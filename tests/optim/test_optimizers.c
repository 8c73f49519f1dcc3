/* Five steps of each optimiser against recorded ones, on both devices; and each is one sweep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/engine.h"
#include "optim/step.h"
#include "optim/update.h"
#include "passes/passes.h"

enum { N = 24, N_STEPS = 5 };

typedef struct optimizer_case {
    const char *name;
    stk_optimizer settings; /* to be filled */
    float first[N], grads[N_STEPS * N], after[N_STEPS * N];
} optimizer_case;

/* As constants: what the macros would fill at run time. */
#undef stk_rmsprop
#undef stk_adagrad
#undef stk_lamb
#undef stk_lars
#undef stk_muon
#define stk_rmsprop(...)                                                                                               \
    {                                                                                                                  \
        STK_OPTIMIZER_NOT_SET, .kind = STK_OPTIMIZER_RMSPROP, __VA_ARGS__                                              \
    }
#define stk_adagrad(...)                                                                                               \
    {                                                                                                                  \
        STK_OPTIMIZER_NOT_SET, .kind = STK_OPTIMIZER_ADAGRAD, __VA_ARGS__                                              \
    }
#define stk_lamb(...)                                                                                                  \
    {                                                                                                                  \
        STK_OPTIMIZER_NOT_SET, .kind = STK_OPTIMIZER_LAMB, __VA_ARGS__                                                 \
    }
#define stk_lars(...)                                                                                                  \
    {                                                                                                                  \
        STK_OPTIMIZER_NOT_SET, .kind = STK_OPTIMIZER_LARS, __VA_ARGS__                                                 \
    }
#define stk_muon(...)                                                                                                  \
    {                                                                                                                  \
        STK_OPTIMIZER_NOT_SET, .kind = STK_OPTIMIZER_MUON, __VA_ARGS__                                                 \
    }
#include "golden/optimizers_golden.h"

enum { N_CASES = sizeof(optimizer_cases) / sizeof(optimizer_cases[0]) };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s", stk_error_text());
}

/* A loss whose gradient for "w" is the input "grad". */
static stk_graph *make_graph(const optimizer_case *c, const char *no_decay)
{
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(4, 6), (stk_init){STK_INIT_CONSTANT, 0}, true);
    stk_value grad = stk_graph_input(graph, "grad", STK_F32, STK_SHAPE(4, 6));
    stk_value loss = stk_reduce_sum(stk_mul(w, grad), 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_options options = {.optimizer = stk_optimizer_fill(c->settings.kind, c->settings), .no_decay = no_decay};
    expect_ok(stk_optim_build(graph, loss, &options));
    return graph;
}

static float *find_variable(stk_engine *engine, const char *name)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++)
        if (!strcmp(stk_engine_variable(engine, i).name, name)) return stk_engine_variable(engine, i).view.data;
    return NULL;
}

static void bind_if_there(stk_program *program, const char *name, const void *data)
{
    int i = stk_program_input(program, name);
    if (i >= 0) stk_program_bind(program, i, data);
}

/* The number of elements that are off after some step. */
static int check(const optimizer_case *c, const char *device)
{
    stk_engine *engine;
    stk_program *program;
    stk_optimizer filled = stk_optimizer_fill(c->settings.kind, c->settings);
    float lr = (float)filled.lr, grad[N];
    int64_t step;
    int n_wrong = 0;
    expect_ok(stk_engine_open(device, NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_graph(c, NULL), NULL, &program));
    bind_if_there(program, "grad", grad);
    bind_if_there(program, "lr", &lr);
    bind_if_there(program, "step", &step);
    float *w = find_variable(engine, "w");
    assert_non_null(w);
    memcpy(w, c->first, sizeof(c->first));
    for (step = 0; step < N_STEPS; step++) {
        memcpy(grad, c->grads + step * N, sizeof(grad));
        expect_ok(stk_program_run(program));
        for (int i = 0; i < N; i++) {
            double want = (double)c->after[step * N + i], off = fabs((double)w[i] - want);
            if (off <= 2e-5 * (0.1 + fabs(want))) continue;
            print_message("%s on %s: step %d, element %d is %.9g, recorded %.9g\n", c->name, device, (int)step, i,
                          (double)w[i], want);
            n_wrong++;
        }
    }
    stk_engine_close(engine);
    return n_wrong;
}

static void as_recorded(void **state)
{
    (void)state;
    int n_wrong = 0;
    for (int i = 0; i < N_CASES; i++)
        n_wrong += check(&optimizer_cases[i], "reference") + check(&optimizer_cases[i], "cpu");
    assert_int_equal(n_wrong, 0);
}

/* Nodes that read or write whole parameters, after the passes. */
static int count_sweeps(const optimizer_case *c)
{
    stk_graph *graph = make_graph(c, NULL);
    stk_pass_options options = {0};
    int n = 0;
    expect_ok(pass_autodiff(graph, &options));
    expect_ok(pass_simplify(graph, &options));
    expect_ok(pass_fuse(graph, &options));
    int32_t w = stk_graph_find(graph, STK_OP_variable, "w").id;
    for (int i = 0; i < graph->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++)
            if (graph->node[i].in[j] == w) {
                n++;
                break;
            }
    stk_graph_free(graph);
    return n;
}

static void element_wise_ones_are_one_sweep(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        stk_optimizer_kind kind = optimizer_cases[i].settings.kind;
        if (kind != STK_OPTIMIZER_RMSPROP && kind != STK_OPTIMIZER_ADAGRAD) continue;
        /* One reader is the loss. */
        int n = count_sweeps(&optimizer_cases[i]) - 1;
        if (n != 1) fail_msg("%s sweeps %d times over its parameter", optimizer_cases[i].name, n);
    }
}

/* What has no decay keeps the plain rate: one step of LARS is then the rate times the gradient. */
static void no_decay_means_the_plain_rate(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    optimizer_case c = {.settings = {STK_OPTIMIZER_NOT_SET, .kind = STK_OPTIMIZER_LARS, .lr = 0.5}};
    float lr = 0.5f, grad[N] = {1, -2};
    expect_ok(stk_engine_open("reference", NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_graph(&c, "w"), NULL, &program));
    bind_if_there(program, "grad", grad);
    bind_if_there(program, "lr", &lr);
    expect_ok(stk_program_run(program));
    const float *w = find_variable(engine, "w");
    assert_true(w[0] == -0.5f && w[1] == 1 && w[2] == 0);
    stk_engine_close(engine);
}

/* A layer of zeros has no norm to go by, and no gradient gives no step. */
static void zeros_are_no_trouble(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        stk_engine *engine;
        stk_program *program;
        float lr = 0.1f, grad[N] = {0};
        int64_t step = 0;
        expect_ok(stk_engine_open("cpu", NULL, 1, &engine));
        expect_ok(stk_engine_compile(engine, make_graph(&optimizer_cases[i], NULL), NULL, &program));
        bind_if_there(program, "grad", grad);
        bind_if_there(program, "lr", &lr);
        bind_if_there(program, "step", &step);
        expect_ok(stk_program_run(program));
        for (int j = 0; j < N; j++)
            if (find_variable(engine, "w")[j] != 0) fail_msg("%s", optimizer_cases[i].name);
        stk_engine_close(engine);
    }
}

static bool takes(stk_graph *graph, stk_value loss, const char *name)
{
    return stk_optim_muon_takes(graph, loss, stk_graph_find(graph, STK_OP_variable, name));
}

static void muon_takes_hidden_matrices(void **state)
{
    (void)state;
    stk_init one = {STK_INIT_CONSTANT, 1};
    stk_graph *graph = stk_graph_new();
    stk_value table = stk_graph_variable(graph, "table", STK_F32, STK_SHAPE(9, 4), one, true);
    stk_value hidden = stk_graph_variable(graph, "hidden", STK_F32, STK_SHAPE(5, 4), one, true);
    stk_value bias = stk_graph_variable(graph, "bias", STK_F32, STK_SHAPE(5), one, true);
    stk_value head = stk_graph_variable(graph, "head", STK_F32, STK_SHAPE(3, 5), one, true);
    stk_value x = stk_embedding_raw(table, stk_graph_input(graph, "ids", STK_I32, STK_SHAPE(7)));
    x = stk_add(stk_matmul(x, hidden, false, true), bias);
    stk_value loss = stk_reduce_sum(stk_matmul(x, head, false, true), 0);
    assert_true(takes(graph, loss, "hidden"));
    assert_false(takes(graph, loss, "table") || takes(graph, loss, "bias") || takes(graph, loss, "head"));
    stk_optim_options options = {.optimizer = STK_OPTIMIZER(MUON, .lr = 0.02)};
    expect_ok(stk_optim_build(graph, loss, &options));
    int n_adam = 0;
    for (int i = 0; i < graph->n_nodes; i++)
        n_adam += graph->node[i].op == STK_OP_adam_update;
    assert_int_equal(n_adam, 3);
    stk_graph_free(graph);
}

/* Adam without its means is the sign of the gradient; LAMB and the others take 0 for their shares too. */
static void shares_may_be_0(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    optimizer_case c = {.settings = STK_OPTIMIZER(ADAM, .lr = 0.5, .beta1 = 0, .beta2 = 0, .eps = 0)};
    float lr = 0.5f, grad[N];
    int64_t step = 0;
    for (int i = 0; i < N; i++)
        grad[i] = i & 1 ? 3.0f : -0.25f;
    for (int kind = 0; kind < 2; kind++) {
        if (kind == 1) c.settings = STK_OPTIMIZER(LAMB, .beta1 = 0, .beta2 = 0, .eps = 0, .weight_decay = 0);
        expect_ok(stk_engine_open("cpu", NULL, 1, &engine));
        expect_ok(stk_engine_compile(engine, make_graph(&c, NULL), NULL, &program));
        bind_if_there(program, "grad", grad);
        bind_if_there(program, "lr", &lr);
        bind_if_there(program, "step", &step);
        expect_ok(stk_program_run(program));
        const float *w = find_variable(engine, "w");
        for (int i = 0; i < N; i++)
            if (fabsf(w[i] - (i & 1 ? -0.5f : 0.5f)) > 1e-6f) fail_msg("%d: %g", i, (double)w[i]);
        stk_engine_close(engine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_recorded),
        cmocka_unit_test(element_wise_ones_are_one_sweep),
        cmocka_unit_test(no_decay_means_the_plain_rate),
        cmocka_unit_test(zeros_are_no_trouble),
        cmocka_unit_test(muon_takes_hidden_matrices),
        cmocka_unit_test(shares_may_be_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

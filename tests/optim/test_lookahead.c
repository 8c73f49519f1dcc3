/* Slow weights: the arithmetic in C, step by step, on both devices, with running statistics; and groups with an end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/engine.h"
#include "optim/lookahead.h"
#include "optim/update.h"

enum { N = 5, N_STEPS = 12 };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s", stk_error_text());
}

/* A loss whose gradient for "w" is the input "grad", and a statistic that the forward pass updates itself. */
static stk_graph *make_graph(const stk_optim_options *options)
{
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(N), (stk_init){STK_INIT_CONSTANT, 2}, true);
    stk_value s = stk_graph_variable(graph, "s", STK_F32, STK_SHAPE(N), (stk_init){STK_INIT_CONSTANT, 1}, false);
    stk_value grad = stk_graph_input(graph, "grad", STK_F32, STK_SHAPE(N));
    stk_value loss = stk_reduce_sum(stk_mul(w, grad), 0);
    stk_graph_update(graph, s, stk_add(stk_scale_by(s, 0.5), grad)); /* the first root, as a network's own may be */
    stk_graph_output(graph, "loss", loss);
    expect_ok(stk_optim_build(graph, loss, options));
    expect_ok(stk_graph_verify(graph));
    return graph;
}

static float read_first(stk_engine *engine, const char *name)
{
    float data[N];
    for (int i = 0; i < stk_engine_n_variables(engine); i++) {
        if (strcmp(stk_engine_variable(engine, i).name, name)) continue;
        expect_ok(stk_engine_read_variable(engine, i, data));
        return data[0];
    }
    fail_msg("no variable '%s'", name);
    return 0;
}

/* Runs N_STEPS + 2 steps with gradients of 0.1, 0.2, ...; check looks after each. */
static void run_steps(const char *device, const stk_optim_options *options,
                      void (*check)(void *user, stk_engine *engine, int step, float grad), void *user)
{
    stk_engine *engine;
    stk_program *program;
    float lr = 1, grad[N];
    expect_ok(stk_engine_open(device, NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_graph(options), NULL, &program));
    stk_program_bind(program, stk_program_input(program, "lr"), &lr);
    stk_program_bind(program, stk_program_input(program, "grad"), grad);
    for (int64_t step = 0; step < N_STEPS + 2; step++) {
        for (int i = 0; i < N; i++)
            grad[i] = 0.1f * (float)(step + 1);
        stk_program_bind(program, stk_program_input(program, "step"), &step);
        expect_ok(stk_program_run(program));
        check(user, engine, (int)step, grad[0]);
    }
    stk_engine_close(engine);
}

typedef struct pair {
    double fast, slow;
} pair;

typedef struct expectation {
    stk_lookahead settings;
    pair w, s;
} expectation;

static void follow(pair *p, const stk_lookahead *settings, double updated, int step)
{
    double alpha = settings->alpha;
    if (settings->power > 0) alpha = 1 - (1 - alpha) * pow(fmin((step + 1.0) / N_STEPS, 1), settings->power);
    p->fast = updated;
    if ((step + 1) % settings->every == 0) p->fast = p->slow += alpha * (updated - p->slow);
    if (step + 1 == N_STEPS) p->fast = p->slow;
}

static void check_step(void *user, stk_engine *engine, int step, float grad)
{
    expectation *e = user;
    follow(&e->w, &e->settings, e->w.fast - (double)grad, step);
    follow(&e->s, &e->settings, 0.5 * e->s.fast + (double)grad, step);
    const double want[] = {e->w.fast, e->w.slow, e->s.fast, e->s.slow};
    static const char *const names[] = {"w", "w.slow", "s", "s.slow"};
    for (int i = 0; i < 4; i++) {
        double got = (double)read_first(engine, names[i]);
        if (!(fabs(got - want[i]) < 1e-5)) fail_msg("step %d: %s is %g, not %g", step, names[i], got, want[i]);
    }
}

static void slow_weights_go_along(void **state)
{
    static const char *const devices[] = {"reference", "cpu"};
    static const stk_lookahead settings[] = {{5, 0.5, 0}, {3, 0.25, 3}, {1, 0.1, 0}, {7, 1, 2}, {4, 0, 0}};
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 5; i++) {
            expectation e = {settings[i], {2, 2}, {1, 1}};
            stk_optim_options options = {
                .optimizer = stk_sgd(.lr = 1), .lookahead = settings[i], .n_steps = N_STEPS, .epoch_steps = 4};
            run_steps(devices[d], &options, check_step, &e);
        }
}

static void check_end(void *user, stk_engine *engine, int step, float grad)
{
    double *want = user;
    if (step < 6) *want -= 3 * (double)grad;
    assert_true(fabs((double)read_first(engine, "w") - *want) < 1e-5);
}

/* Two and a half epochs of four steps make ten; one and a half six. */
static void a_group_may_end(void **state)
{
    stk_param_group group = {.match = "w", .lr_factor = 3, .weight_decay = -1, .until_epochs = 1.5};
    stk_optim_options options = {.optimizer = stk_sgd(.lr = 1), .groups = &group, .n_groups = 1, .epoch_steps = 4};
    double want = 2;
    (void)state;
    run_steps("cpu", &options, check_end, &want);
}

static void refuse(stk_optim_options options, const char *text)
{
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(N), (stk_init){STK_INIT_CONSTANT, 0}, true);
    options.optimizer = stk_sgd(.lr = 1);
    assert_int_equal(stk_optim_build(graph, stk_reduce_sum(w, 0), &options), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
    stk_graph_free(graph);
}

static void bad_settings(void **state)
{
    stk_param_group group = {.match = "w", .lr_factor = 1, .weight_decay = -1, .until_epochs = -1};
    (void)state;
    refuse((stk_optim_options){.lookahead = {.every = -1}}, "lookahead: 'every' is -1 steps, and must be 1 or more");
    refuse((stk_optim_options){.lookahead = {.every = 1, .alpha = 1.5}},
           "lookahead: 'alpha' is 1.5, and must be from 0 to 1");
    refuse((stk_optim_options){.lookahead = {.every = 1, .alpha = 0.5, .power = NAN}},
           "lookahead: 'power' is nan, and must be 0 or more");
    refuse((stk_optim_options){.groups = &group, .n_groups = 1},
           "a group's 'until' is -1 epochs, and must be 0 or more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_weights_go_along),
        cmocka_unit_test(a_group_may_end),
        cmocka_unit_test(bad_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The loss scale: true gradients, skipped steps that change nothing, a scale that falls and grows. Scales are powers of
 * two, so that scaled and plain training agree to the bit. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "optim/update.h"
#include "stoker/nn/nn.h"

enum { N = 4 };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

typedef struct training {
    stk_engine *engine;
    stk_program *program;
    float x[N], lr;
    int64_t step;
} training;

/* loss = sum of w * w * x + w * x, whose gradient is 2 w x + x. */
static stk_graph *make_graph(stk_optimizer optimizer, double clip_norm)
{
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(N));
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(N), (stk_init){STK_INIT_NORMAL, 1}, true);
    stk_value b = stk_graph_variable(graph, "b", STK_F32, (stk_shape){0}, (stk_init){STK_INIT_NORMAL, 1}, true);
    stk_value loss = stk_reduce_sum(stk_mul(stk_add(stk_mul(w, w), stk_mul(w, b)), x), 0);
    stk_optim_options options = {.optimizer = optimizer, .clip_norm = clip_norm};
    stk_graph_output(graph, "loss", loss);
    expect_ok(stk_optim_build(graph, loss, &options));
    return graph;
}

static void start_with(training *t, const char *device, stk_optimizer optimizer, double clip_norm,
                       const stk_compile_options *options)
{
    stk_device_config config = {.n_threads = 1};
    *t = (training){.lr = 0.125f, .x = {1, -2, 0.5f, 3}};
    expect_ok(stk_engine_open(device, &config, 5, &t->engine));
    expect_ok(stk_engine_compile(t->engine, make_graph(optimizer, clip_norm), options, &t->program));
    stk_program_bind(t->program, stk_program_input(t->program, "x"), t->x);
    stk_program_bind(t->program, stk_program_input(t->program, "lr"), &t->lr);
    stk_program_bind(t->program, stk_program_input(t->program, "step"), &t->step);
}

static void start(training *t, const char *device, stk_optimizer optimizer, double clip_norm, stk_loss_scale scale)
{
    stk_compile_options options = {.loss_scale = scale};
    start_with(t, device, optimizer, clip_norm, &options);
}

/* A step on inputs multiplied by `factor`. */
static void run(training *t, float factor)
{
    float before[N];
    memcpy(before, t->x, sizeof(before));
    for (int i = 0; i < N; i++)
        t->x[i] *= factor;
    expect_ok(stk_program_run(t->program));
    memcpy(t->x, before, sizeof(before));
    t->step++;
}

static double output(const training *t, const char *name)
{
    const double *p = stk_program_output(t->program, name, NULL);
    assert_non_null(p);
    return *p;
}

static stk_variable_view variable(const training *t, const char *name)
{
    for (int i = 0; i < stk_engine_n_variables(t->engine); i++)
        if (!strcmp(stk_engine_variable(t->engine, i).name, name)) return stk_engine_variable(t->engine, i);
    fail_msg("no variable '%s'", name);
    return (stk_variable_view){0};
}

static double scale_of(const training *t)
{
    return (double)*(const float *)variable(t, "loss_scale.scale").view.data;
}

/* Every variable of b but the scale's own is in a, with the same bits. */
static void expect_same(const training *a, const training *b)
{
    for (int i = 0; i < stk_engine_n_variables(b->engine); i++) {
        stk_variable_view want = stk_engine_variable(b->engine, i);
        if (!strncmp(want.name, "loss_scale.", 11)) continue;
        stk_variable_view have = variable(a, want.name);
        if (memcmp(have.view.data, want.view.data, stk_desc_bytes(want.view.desc)))
            fail_msg("variable '%s' differs", want.name);
    }
}

static const char *const devices[] = {"reference", "cpu"};

static stk_loss_scale dynamic(void)
{
    stk_loss_scale s = stk_loss_scale_default();
    s.kind = STK_LOSS_SCALE_DYNAMIC;
    return s;
}

static void scaled_steps_equal_plain_ones(void **state)
{
    (void)state;
    const stk_optimizer optimizers[] = {stk_sgd(.lr = 0.125, .momentum = 0.9), stk_adam(.lr = 0.125)};
    const stk_loss_scale kinds[] = {dynamic(), {.kind = STK_LOSS_SCALE_FIXED, .initial = 1024}};
    for (int i = 0; i < 16; i++) {
        training plain, scaled;
        start(&plain, devices[i & 1], optimizers[i >> 1 & 1], i & 4 ? 0.5 : 0, (stk_loss_scale){0});
        start(&scaled, devices[i & 1], optimizers[i >> 1 & 1], i & 4 ? 0.5 : 0, kinds[i >> 3]);
        for (int step = 0; step < 5; step++) {
            /* A step that is skipped counts for nothing: not for momentum, nor for Adam's bias correction. */
            if (step % 2 && kinds[i >> 3].kind == STK_LOSS_SCALE_DYNAMIC) {
                run(&scaled, step == 1 ? INFINITY : step == 3 ? NAN : FLT_MAX);
                assert_true(output(&scaled, "n_skipped_in_a_row") == 1);
            }
            run(&plain, 1);
            run(&scaled, 1);
            expect_same(&scaled, &plain);
        }
        stk_engine_close(plain.engine);
        stk_engine_close(scaled.engine);
    }
}

/* on_nan: skip, without a scale and with a fixed one. */
static void steps_are_skipped_without_a_dynamic_scale(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        training plain, guarded;
        stk_compile_options options = {.skip_nonfinite = true};
        if (i & 2) options.loss_scale = (stk_loss_scale){.kind = STK_LOSS_SCALE_FIXED, .initial = 1024};
        start(&plain, devices[i & 1], stk_adam(.lr = 0.125), 0.5, (stk_loss_scale){0});
        start_with(&guarded, devices[i & 1], stk_adam(.lr = 0.125), 0.5, &options);
        for (int step = 0; step < 4; step++) {
            if (step % 2) run(&guarded, step == 1 ? INFINITY : NAN);
            run(&plain, 1);
            run(&guarded, 1);
            expect_same(&guarded, &plain);
        }
        assert_true(output(&guarded, "n_skipped") == 2 && output(&guarded, "n_skipped_in_a_row") == 0);
        assert_true((stk_program_output(guarded.program, "loss_scale", NULL) != NULL) == (i >= 2));
        stk_engine_close(plain.engine);
        stk_engine_close(guarded.engine);
    }
}

static void the_scale_falls_and_grows(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        training t;
        stk_loss_scale scale = dynamic();
        scale.every = 3;
        start(&t, devices[i], stk_sgd(.lr = 0.125), 0, scale);
        assert_true(scale_of(&t) == 65536);
        run(&t, 1);
        run(&t, 1);
        assert_true(scale_of(&t) == 65536);
        run(&t, 1);
        assert_true(scale_of(&t) == 131072 && output(&t, "loss_scale") == 65536);
        run(&t, 1);
        run(&t, INFINITY); /* the count of finite steps starts again */
        run(&t, INFINITY);
        assert_true(scale_of(&t) == 32768);
        assert_true(output(&t, "n_skipped") == 2 && output(&t, "n_skipped_in_a_row") == 2);
        run(&t, 1);
        run(&t, 1);
        assert_true(scale_of(&t) == 32768 && output(&t, "n_skipped_in_a_row") == 0);
        run(&t, 1);
        assert_true(scale_of(&t) == 65536 && output(&t, "n_skipped") == 2);
        stk_engine_close(t.engine);
    }
}

static void growth_stops_before_infinity(void **state)
{
    (void)state;
    training t;
    stk_loss_scale scale = dynamic();
    scale.initial = 0x1p126;
    scale.every = 1;
    start(&t, "cpu", stk_sgd(.lr = 0.125), 0, scale);
    run(&t, 0);
    assert_true(scale_of(&t) == 0x1p127);
    run(&t, 0);
    assert_true(scale_of(&t) == 0x1p127);
    stk_engine_close(t.engine);
}

static void bad_scales(void **state)
{
    (void)state;
    stk_loss_scale scale = dynamic();
    assert_true(scale.initial == 65536 && scale.every == 2000 && scale.growth == 2 && scale.backoff == 0.5);
    expect_ok(stk_loss_scale_check(&scale));
    scale.backoff = 1;
    assert_int_equal(stk_loss_scale_check(&scale), STK_INVALID);
    scale = dynamic();
    scale.initial = INFINITY;
    assert_int_equal(stk_loss_scale_check(&scale), STK_INVALID);
    scale.initial = 0;
    assert_int_equal(stk_loss_scale_check(&scale), STK_INVALID);
    scale = dynamic();
    scale.kind = (stk_loss_scale_kind)4;
    assert_int_equal(stk_loss_scale_check(&scale), STK_INVALID);
    assert_string_equal(stk_error_text(), "loss scale: there is no kind 4");
}

/* A loss so small that its gradients are below 2^-24, f16's smallest number. Returns how far the weight moved. */
static double move_in_f16(stk_loss_scale scale)
{
    stk_device_config config = {.n_threads = 1};
    stk_compile_options options = {.loss_scale = scale, .compute = STK_F16};
    stk_graph *graph = stk_graph_new();
    stk_engine *engine;
    stk_program *program;
    float x[4] = {1, 1, 1, 1}, lr = 1e6f;
    stk_value h = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(2, 2));
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"a", "b", "c"};
        h = stk_matmul(
            h, stk_graph_variable(graph, names[i], STK_F32, STK_SHAPE(2, 2), (stk_init){STK_INIT_CONSTANT, 1}, true),
            false, false);
    }
    stk_value loss = stk_scale_by(stk_reduce_sum(h, 0), 1e-9);
    stk_optim_options optim = {.optimizer = stk_sgd(.lr = 1)};
    expect_ok(stk_optim_build(graph, loss, &optim));
    expect_ok(stk_engine_open("cpu", &config, 5, &engine));
    expect_ok(stk_engine_compile(engine, graph, &options, &program));
    stk_program_bind(program, stk_program_input(program, "x"), x);
    stk_program_bind(program, stk_program_input(program, "lr"), &lr);
    expect_ok(stk_program_run(program));
    training t = {.engine = engine};
    double moved = 1 - (double)*(const float *)variable(&t, "a").view.data;
    stk_engine_close(engine);
    return moved;
}

static void small_gradients_need_the_scale(void **state)
{
    (void)state;
    /* d loss / d a[i][j] = 1e-9 * 2 rows * 2 * 2 paths. */
    double moved = move_in_f16(dynamic());
    assert_true(fabs(moved - 8e-3) < 8e-3 * 0x1p-10);
    assert_true(move_in_f16((stk_loss_scale){0}) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaled_steps_equal_plain_ones),
        cmocka_unit_test(the_scale_falls_and_grows),
        cmocka_unit_test(steps_are_skipped_without_a_dynamic_scale),
        cmocka_unit_test(growth_stops_before_infinity),
        cmocka_unit_test(bad_scales),
        cmocka_unit_test(small_gradients_need_the_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

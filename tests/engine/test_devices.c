/* One network over two devices: the bits of one device, in arenas and under limits of their own. The awkward devices
 * work late, and what was not waited for is poison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "device/awkward/awkward.h"
#include "engine/engine.h"
#include "optim/update.h"
#include "stoker/nn/nn.h"

enum { SIDE = 8, BATCH = 8, N_CLASSES = 10, N_STEPS = 6, MOST_BYTES = 1 << 20 };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static int add_device(void **state)
{
    (void)state;
    awkward_add();
    return 0;
}

static stk_model *make_model(void)
{
    stk_model *model = stk_model_new("small");
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 3);
    x = stk_relu(stk_batch_norm(stk_conv2d(x, 8, 3)));
    x = stk_relu(stk_dense(stk_flatten(stk_max_pool(x, 2)), 24));
    x = stk_dropout(stk_relu(stk_dense(x, 20)), 0.2);
    stk_value logits = stk_dense(x, N_CLASSES);
    stk_model_loss(model, stk_cross_entropy(logits, stk_model_label(model)));
    stk_model_output(model, logits);
    return model;
}

static stk_graph *make_step(bool training)
{
    stk_model *model = make_model();
    expect_ok(stk_model_status(model));
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), BATCH);
    stk_value loss = stk_reduce_mean(stk_value_of(graph, stk_model_get_loss(model).id), 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_options options = {.optimizer = stk_adam(.lr = 1e-2), .clip_norm = 1};
    if (training) expect_ok(stk_optim_build(graph, loss, &options));
    stk_model_free(model);
    return graph;
}

/* --- runs --- */

/* To the second device and back, twice; the loss is there, too, in the second one. */
static const stk_place_mark middle[] = {{"dense", 1}}, ends[] = {{"conv2d", 1}, {"dense_1", 1}, {"dense_2", 1}};

static float images[BATCH * SIDE * SIDE * 3];
static int32_t labels[BATCH];

static void bind_step(stk_program *program, int64_t step)
{
    const float lr = 1e-2F;
    const int64_t seed = 3;
    for (int i = 0; i < BATCH * SIDE * SIDE * 3; i++)
        images[i] = (float)((i * 31 + 7 * (int)step) % 101) / 101;
    for (int i = 0; i < BATCH; i++)
        labels[i] = (int32_t)((i + step) % N_CLASSES);
    stk_program_bind(program, stk_program_input(program, "image"), images);
    stk_program_bind(program, stk_program_input(program, "label"), labels);
    expect_ok(stk_program_set(program, stk_program_input(program, "step"), &step));
    expect_ok(stk_program_set(program, stk_program_input(program, "seed"), &seed));
    expect_ok(stk_program_set(program, stk_program_input(program, "sample"), &step));
    expect_ok(stk_program_set(program, stk_program_input(program, "lr"), &lr));
}

typedef struct result {
    float loss[N_STEPS];
    char variables[MOST_BYTES];
    size_t n_bytes;
    stk_program_info info;
} result;

typedef struct setup {
    const char *device[2];
    int n_devices, n_threads;
    const stk_place_mark *place;
    int n_places;
    bool forward, profile;
    stk_dtype compute;
} setup;

static void read_variables(stk_engine *engine, result *out)
{
    out->n_bytes = 0;
    for (int i = 0; i < stk_engine_n_variables(engine); i++) {
        size_t bytes = stk_desc_bytes(stk_engine_variable(engine, i).view.desc);
        assert_true(out->n_bytes + bytes <= MOST_BYTES);
        expect_ok(stk_engine_read_variable(engine, i, out->variables + out->n_bytes));
        out->n_bytes += bytes;
    }
}

static void run(const setup *s, result *out)
{
    stk_engine *engine;
    stk_program *program;
    stk_device_config config[2] = {{.n_threads = s->n_threads}, {.n_threads = s->n_threads}};
    stk_compile_options options = {.place = s->place, .n_places = s->n_places, .compute = s->compute};
    expect_ok(stk_engine_open_many(s->device, config, s->n_devices, 5, &engine));
    expect_ok(stk_engine_compile(engine, make_step(!s->forward), &options, &program));
    stk_program_profile(program, s->profile);
    /* Nothing is waited for but the inputs, until as many runs as are kept have been enqueued. */
    int ahead = stk_engine_runs_ahead(engine);
    for (int step = 0; step < N_STEPS; step++) {
        bind_step(program, step);
        expect_ok(stk_program_run(program));
        expect_ok(stk_program_wait_inputs(program));
        int n_back = ahead == 0 ? 0 : step < N_STEPS - 1 ? 1 : 0;
        if (step - n_back < 0) continue;
        for (int back = n_back; back >= (step == N_STEPS - 1 ? 0 : n_back); back--) {
            expect_ok(stk_program_wait(program, back));
            out->loss[step - back] = *(const float *)stk_program_output(program, "loss", NULL);
        }
    }
    if (ahead) { /* The last but one was not seen in the loop. */
        expect_ok(stk_program_wait(program, 1));
        out->loss[N_STEPS - 2] = *(const float *)stk_program_output(program, "loss", NULL);
    }
    read_variables(engine, out);
    out->info = stk_program_get_info(program);
    stk_engine_close(engine);
}

static result one, many;

static void expect_same(setup s, const char *alone)
{
    setup single = s;
    single.device[0] = alone;
    single.n_devices = 1;
    single.place = NULL;
    single.n_places = 0;
    single.profile = false;
    memset(&one, 0, sizeof(one));
    memset(&many, 0, sizeof(many));
    run(&single, &one);
    run(&s, &many);
    assert_memory_equal(one.loss, many.loss, sizeof(one.loss));
    assert_int_equal(one.n_bytes, many.n_bytes);
    if (!s.forward) assert_true(one.loss[0] != one.loss[N_STEPS - 1]);
    assert_int_equal(one.info.n_segments, 0);
    assert_true(many.info.n_segments > 2);
    assert_true(many.info.device_bytes[0] > 0 && many.info.device_bytes[1] > 0);
    assert_int_equal(many.info.device_bytes[0] + many.info.device_bytes[1], many.info.arena_bytes);
    assert_int_equal(many.info.used_bytes, many.info.arena_bytes);
}

static void bits_are_those_of_one_device(void **state)
{
    const char *const *name = *state;
    for (int i = 0; i < 8; i++) {
        setup s = {.device = {name[0], name[1]}, .n_devices = 2, .n_threads = 1 + i / 4};
        s.place = i % 2 ? ends : middle;
        s.n_places = i % 2 ? 3 : 1;
        s.forward = i / 2 % 2;
        expect_same(s, name[2]);
    }
}

/* Kernel by kernel, and in 16 bits. */
static void profiles_and_halves(void **state)
{
    const char *const *name = *state;
    setup s = {.device = {name[0], name[1]}, .n_devices = 2, .n_threads = 1, .place = ends, .n_places = 3};
    s.profile = true;
    expect_same(s, name[2]);
    s.profile = false;
    s.compute = STK_BF16;
    expect_same(s, name[2]);
}

/* --- what is refused --- */

static void limits_are_each_devices_own(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "cpu:1"};
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.place = middle, .n_places = 1, .plan_only = true};
    expect_ok(stk_engine_open_many(names, NULL, 2, 1, &engine));
    assert_int_equal(stk_engine_n_devices(engine), 2);
    expect_ok(stk_engine_compile(engine, make_step(true), &options, &program));
    size_t second = stk_program_get_info(program).device_bytes[1];
    options.device_limit_bytes[1] = second; /* Parameters come besides. */
    assert_int_equal(stk_engine_compile(engine, make_step(true), &options, &program), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "device 'cpu:1': the plan needs"));
    options.device_limit_bytes[1] = 0;
    options.device_limit_bytes[0] = 1000;
    assert_int_equal(stk_engine_compile(engine, make_step(true), &options, &program), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "device 'cpu': the plan needs"));
    options.device_limit_bytes[0] = options.device_limit_bytes[1] = (size_t)1 << 30;
    expect_ok(stk_engine_compile(engine, make_step(true), &options, &program));
    stk_engine_close(engine);
}

static void refuse(stk_engine *engine, stk_graph *graph, const stk_place_mark *place, const char *words)
{
    stk_program *program;
    stk_compile_options options = {.place = place, .n_places = !!place};
    assert_true(stk_engine_compile(engine, graph, &options, &program) != STK_OK);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
}

static void wrong_places_are_named(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "cpu:1"}, *const absent[] = {"cpu", "cpu:9"};
    stk_engine *engine;
    stk_program *program;
    expect_ok(stk_engine_open_many(names, NULL, 2, 1, &engine));
    refuse(engine, make_step(true), &(stk_place_mark){"dens", 1}, "there is no layer 'dens'");
    refuse(engine, make_step(true), &(stk_place_mark){"dense", 2}, "'dense' is to be on device 2, and there are 2");
    stk_compile_options options = {.place = middle, .n_places = 1};
    expect_ok(stk_engine_compile(engine, make_step(true), &options, &program));
    refuse(engine, make_step(true), NULL, "on device 0 here and on device 1 in another graph");
    stk_compile_options sliced = {.batch = 2 * BATCH, .micro = BATCH};
    assert_int_equal(stk_engine_compile(engine, make_step(true), &sliced, &program), STK_UNSUPPORTED);
    stk_engine_close(engine);
    assert_int_equal(stk_engine_open_many(absent, NULL, 2, 1, &engine), STK_NO_DEVICE);
    assert_int_equal(stk_engine_open_many(names, NULL, 0, 1, &engine), STK_INVALID);
    expect_ok(stk_engine_open("cpu", NULL, 1, &engine));
    stk_graph *graph = stk_graph_new();
    stk_graph_output(graph, "y", stk_copy_to(stk_graph_input(graph, "x", STK_F32, STK_SHAPE(4)), 1));
    refuse(engine, graph, NULL, "copy_to is on device 1, and the engine has 1");
    stk_engine_close(engine);
}

/* --- graphs that say it themselves --- */

/* Each device has a part; sums of both are on both. A variable that the other device reads is written at the end. */
static stk_graph *make_sums(void)
{
    stk_graph *graph = stk_graph_new();
    stk_init one_each = {STK_INIT_CONSTANT, 1};
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(64), one_each, true);
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(64)), sum[2], mean[2];
    stk_value there = stk_mul(stk_copy_to(w, 1), stk_exp(stk_copy_to(x, 1)));
    stk_value parts[] = {stk_mul(x, w), there};
    stk_all_reduce(parts, 2, false, sum);
    stk_all_reduce(sum, 2, true, mean);
    stk_value loss = stk_reduce_sum(stk_add(mean[0], stk_copy_to(stk_mul(mean[1], sum[1]), 0)), 0);
    stk_graph_output(graph, "loss", loss);
    stk_graph_output(graph, "sum", sum[1]);
    stk_graph_update(graph, w,
                     stk_sub(w, stk_mul(stk_grad(loss, w), stk_graph_constant(graph, STK_F32, (stk_shape){0}, 1e-4))));
    return graph;
}

static void run_sums(const char *const *device, float sum[64], float w[64])
{
    stk_engine *engine;
    stk_program *program;
    float x[64];
    expect_ok(stk_engine_open_many(device, NULL, 2, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_sums(), NULL, &program));
    for (int step = 0; step < N_STEPS; step++) {
        for (int i = 0; i < 64; i++)
            x[i] = (float)(i + step) / 64;
        stk_program_bind(program, stk_program_input(program, "x"), x);
        expect_ok(stk_program_run(program));
        expect_ok(stk_program_wait_inputs(program));
    }
    expect_ok(stk_program_wait(program, 0));
    memcpy(sum, stk_program_output(program, "sum", NULL), 64 * sizeof(float));
    expect_ok(stk_engine_read_variable(engine, 0, w));
    stk_engine_close(engine);
}

static void sums_over_devices(void **state)
{
    (void)state;
    static const char *const shared[] = {"reference", "reference:1"}, *const apart[] = {"awkward", "awkward:1"},
                             *const mixed[] = {"reference", "awkward"}, *const turned[] = {"awkward", "reference"};
    float sum[64], w[64], other_sum[64], other_w[64];
    run_sums(shared, sum, w);
    assert_true(w[5] != 1 && w[5] == w[5]);
    const char *const *all[] = {apart, mixed, turned};
    for (int i = 0; i < 3; i++) {
        run_sums(all[i], other_sum, other_w);
        assert_memory_equal(sum, other_sum, sizeof(sum));
        assert_memory_equal(w, other_w, sizeof(w));
    }
}

/* The second device is behind, and nothing of the first waits for it: what it has yet to read must stay as it is, in
 * the next runs, too. A counter on the first is added up on the second, long after. */
static void what_is_read_late_stays(void **state)
{
    (void)state;
    static const char *const names[] = {"awkward", "awkward:1"};
    enum { N = 64, N_RUNS = 400 };
    stk_engine *engine;
    stk_program *program;
    static const stk_place_mark mark[] = {{"second", 1}};
    float step[N], total[N], expected[N] = {0}, count[N] = {0};
    stk_graph *graph = stk_graph_new();
    stk_value counter = stk_graph_variable(graph, "counter", STK_F32, STK_SHAPE(N), (stk_init){0}, false);
    stk_value added = stk_graph_variable(graph, "second.total", STK_F32, STK_SHAPE(N), (stk_init){0}, false);
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(N)), late = added;
    for (int i = 0; i < 24; i++) /* work, one after the other, that changes nothing */
        late = stk_cumsum(stk_sub(late, late), 0, i % 2, false);
    stk_value both = stk_add(stk_copy_to(counter, 1), stk_copy_to(stk_mul(x, counter), 1));
    stk_graph_update(graph, added, stk_add(stk_add(added, late), both));
    stk_graph_update(graph, counter, stk_add(counter, x));
    stk_graph_output(graph, "seen", stk_mul(x, x));
    stk_compile_options options = {.place = mark, .n_places = 1, .no_fuse = true};
    expect_ok(stk_engine_open_many(names, NULL, 2, 1, &engine));
    expect_ok(stk_engine_compile(engine, graph, &options, &program));
    for (int run = 0; run < N_RUNS; run++) {
        for (int i = 0; i < N; i++) {
            step[i] = (float)(run % 3 + i % 5);
            expected[i] += count[i] + step[i] * count[i];
            count[i] += step[i];
        }
        expect_ok(stk_program_set(program, stk_program_input(program, "x"), step));
        expect_ok(stk_program_run(program));
    }
    for (int i = 0; i < 2; i++)
        if (!strcmp(stk_engine_variable(engine, i).name, "second.total"))
            expect_ok(stk_engine_read_variable(engine, i, total));
    assert_memory_equal(total, expected, sizeof(total));
    stk_engine_close(engine);
}

/* A label that is no class is found on the second device, and told by who waits for the first. */
static void failures_of_others_show(void **state)
{
    (void)state;
    static const char *const names[] = {"awkward", "awkward:1"};
    static const stk_place_mark last[] = {{"dense_2", 1}};
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.place = last, .n_places = 1};
    expect_ok(stk_engine_open_many(names, NULL, 2, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_step(true), &options, &program));
    bind_step(program, 0);
    labels[3] = 1000;
    expect_ok(stk_program_run(program));
    assert_int_equal(stk_program_wait(program, 0), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "1000"));
    stk_engine_close(engine);
}

int main(void)
{
    static const char *cpu[] = {"cpu", "cpu:1", "cpu"}, *reference[] = {"reference", "reference:1", "reference"},
                      *awkward[] = {"awkward:0", "awkward:1", "reference"},
                      *mixed[] = {"reference", "awkward", "reference"},
                      *turned[] = {"awkward", "reference", "reference"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(bits_are_those_of_one_device, reference),
        cmocka_unit_test_prestate(bits_are_those_of_one_device, cpu),
        cmocka_unit_test_prestate(bits_are_those_of_one_device, awkward),
        cmocka_unit_test_prestate(bits_are_those_of_one_device, mixed),
        cmocka_unit_test_prestate(bits_are_those_of_one_device, turned),
        cmocka_unit_test_prestate(profiles_and_halves, cpu),
        cmocka_unit_test_prestate(profiles_and_halves, awkward),
        cmocka_unit_test(limits_are_each_devices_own),
        cmocka_unit_test(wrong_places_are_named),
        cmocka_unit_test(sums_over_devices),
        cmocka_unit_test(what_is_read_late_stays),
        cmocka_unit_test(failures_of_others_show),
    };
    return cmocka_run_group_tests(tests, add_device, NULL);
}

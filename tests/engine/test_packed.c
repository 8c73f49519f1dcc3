/* Weights kept as kernels want them, on a device whose products keep theirs backwards: the same bits as without, made
 * once after each change by whomever, one copy for equal calls, none where memory has no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "engine/engine.h"
#include "optim/update.h"
#include "stoker/nn/nn.h"

enum { ROWS = 6, WIDTH = 12, CLASSES = 3, N_STEPS = 3 };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* --- the device --- */

static int n_made, n_read, fails_at; /* fails_at: the next keep but N, from 1; 0: none */
static stk_device_class keeper;

typedef struct backwards {
    stk_kernel inner;
    size_t n;
} backwards;

static stk_status run_backwards(const void *state, const stk_kernel_args *args)
{
    const backwards *s = state;
    char *scratch = args->scratch;
    uint16_t *weight = (uint16_t *)(void *)(scratch + (s->inner.scratch_bytes + 63) / 64 * 64);
    void *in[3] = {args->in[0], args->in[1], NULL};
    const uint16_t *kept = args->packed;
    for (size_t i = 0; kept && i < s->n; i++)
        weight[i] = kept[s->n - 1 - i];
    if (kept) in[1] = weight, n_read++;
    stk_kernel_args own = {.in = in, .out = args->out, .scratch = s->inner.scratch_bytes ? scratch : NULL};
    return s->inner.run(s->inner.state, &own);
}

static stk_status keep_backwards(const void *state, const stk_kernel_args *args)
{
    const backwards *s = state;
    if (fails_at && --fails_at == 0) return stk_fail(STK_IO, "no luck");
    n_made++;
    stk_tensor_desc from = {STK_F32, STK_SHAPE((int64_t)s->n)}, to = {STK_BF16, from.shape};
    stk_attrs attrs = stk_attrs_zero();
    attrs.dtype = STK_BF16;
    stk_op_call call = {STK_OP_cast, &attrs, 1, 1, &from, &to};
    stk_device *device;
    stk_kernel cast;
    STK_RETURN_IF_ERROR(stk_device_open("reference", NULL, &device));
    stk_status status = device->class->kernel(device, &call, &cast);
    if (status == STK_OK) {
        uint16_t *kept = args->out[0];
        status = cast.run(cast.state, args);
        for (size_t i = 0; i < s->n / 2; i++) {
            uint16_t first = kept[i];
            kept[i] = kept[s->n - 1 - i];
            kept[s->n - 1 - i] = first;
        }
        stk_kernel_free(&cast);
    }
    stk_device_close(device);
    return status;
}

static void release(void *state)
{
    backwards *s = state;
    stk_kernel_free(&s->inner);
    free(s);
}

static stk_status find_kernel(stk_device *device, const stk_op_call *call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_device_class_cpu.kernel(device, call, out));
    out->packed_bytes = 0; /* what the cpu would keep is not this test's */
    if (call->op != STK_OP_matmul || call->n_in != 2 || call->in[1].dtype != STK_BF16) return STK_OK;
    backwards *s = malloc(sizeof(*s));
    if (!s) {
        stk_kernel_free(out);
        return stk_fail_memory(sizeof(*s));
    }
    *s = (backwards){*out, (size_t)stk_shape_count(call->in[1].shape)};
    *out = (stk_kernel){.run = run_backwards, .state = s, .release = release, .pack = keep_backwards};
    out->packed_bytes = s->n * sizeof(uint16_t);
    out->packed_layout = call->attrs->matmul.transpose_b;
    out->packed_input = 1;
    out->scratch_bytes = (s->inner.scratch_bytes + 63) / 64 * 64 + out->packed_bytes;
    return STK_OK;
}

static stk_status open_keeper(const stk_device_config *config, stk_device **out)
{
    STK_RETURN_IF_ERROR(stk_device_class_cpu.open(config, out));
    (*out)->class = &keeper;
    return STK_OK;
}

/* --- the network --- */

static stk_value new_weight(stk_graph *graph, const char *name, int64_t rows, int64_t columns)
{
    return stk_graph_variable(graph, name, STK_F32, STK_SHAPE(rows, columns), (stk_init){STK_INIT_NORMAL, 0.3}, true);
}

/* The second weight is used twice, in equal calls. */
static stk_value make_loss(stk_graph *graph)
{
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(ROWS, WIDTH));
    stk_value label = stk_graph_input(graph, "label", STK_I32, STK_SHAPE(ROWS));
    stk_value first = new_weight(graph, "first", WIDTH, WIDTH), second = new_weight(graph, "second", WIDTH, WIDTH);
    x = stk_relu(stk_matmul(x, first, false, false));
    for (int i = 0; i < 2; i++)
        x = stk_relu(stk_matmul(x, second, false, true));
    x = stk_matmul(x, new_weight(graph, "last", WIDTH, CLASSES), false, false);
    stk_value loss = stk_reduce_mean(stk_cross_entropy(x, label), 0);
    stk_graph_output(graph, "loss", loss);
    return loss;
}

typedef struct training {
    stk_engine *engine;
    stk_program *program, *eval;
    float x[ROWS * WIDTH], lr;
    int32_t label[ROWS];
    int64_t step;
} training;

static void bind(training *t, stk_program *program)
{
    stk_program_bind(program, stk_program_input(program, "x"), t->x);
    stk_program_bind(program, stk_program_input(program, "label"), t->label);
    stk_program_bind(program, stk_program_input(program, "lr"), &t->lr);
    stk_program_bind(program, stk_program_input(program, "step"), &t->step);
}

static void add_program(training *t, bool trains, stk_compile_options options, stk_program **out)
{
    stk_graph *graph = stk_graph_new();
    stk_value loss = make_loss(graph);
    stk_optim_options optim = {.optimizer = stk_adam(.lr = 0.02)};
    if (trains) expect_ok(stk_optim_build(graph, loss, &optim));
    options.compute = STK_BF16;
    options.inference = !trains;
    expect_ok(stk_engine_compile(t->engine, graph, &options, out));
    bind(t, *out);
}

static void start(training *t, const char *device, stk_compile_options options)
{
    stk_device_config config = {.n_threads = 2};
    *t = (training){.lr = 0.02f};
    for (int i = 0; i < ROWS * WIDTH; i++)
        t->x[i] = (float)((i * 37 + 11) % 17 - 8) / 8;
    for (int i = 0; i < ROWS; i++)
        t->label[i] = i % CLASSES;
    expect_ok(stk_engine_open(device, &config, 7, &t->engine));
    add_program(t, true, options, &t->program);
    n_made = n_read = fails_at = 0;
}

static float run(training *t, stk_program *program)
{
    expect_ok(stk_program_run(program));
    if (program == t->program) t->step++;
    return *(const float *)stk_program_output(program, "loss", NULL);
}

static void expect_same(const training *a, const training *b)
{
    for (int i = 0; i < stk_engine_n_variables(a->engine); i++) {
        stk_variable_view have = stk_engine_variable(a->engine, i), want = stk_engine_variable(b->engine, i);
        if (memcmp(have.view.data, want.view.data, stk_desc_bytes(want.view.desc)))
            fail_msg("variable '%s' differs", want.name);
    }
}

/* "first" forward (its gradient of data is nobody's), "second" forward and backward; "last" stays in f32. */
enum { N_KEPT = 3 };

static const stk_compile_options keeps = {.keep_packed = true}, packs = {0};

static void a_step_has_the_same_bits(void **state)
{
    (void)state;
    training kept, plain;
    start(&plain, "keeper", packs);
    start(&kept, "keeper", keeps);
    assert_int_equal(stk_program_get_info(plain.program).packed_bytes, 0);
    assert_int_not_equal(stk_program_get_info(kept.program).packed_bytes, 0);
    assert_true(stk_program_get_info(kept.program).arena_bytes <= stk_program_get_info(plain.program).arena_bytes);
    for (int i = 0; i < N_STEPS; i++) {
        n_read = n_made = 0;
        float loss = run(&kept, kept.program);
        /* All before the first step, and after each. */
        assert_int_equal(n_made, (i == 0 ? 2 : 1) * N_KEPT);
        assert_int_equal(n_read, 5);
        assert_true(loss == run(&plain, plain.program));
        expect_same(&kept, &plain);
    }
    stk_engine_close(kept.engine);
    stk_engine_close(plain.engine);
}

static void run_both(training *kept, training *plain, bool trains)
{
    float a = run(kept, trains ? kept->program : kept->eval), b = run(plain, trains ? plain->program : plain->eval);
    assert_true(a == b);
}

/* As many channels in as out: what the forward pass and the gradient of data keep of a weight has one size. */
static stk_graph *make_convolutions(void)
{
    enum { CHANNELS = 128, SIDE = 8, N_LAYERS = 3 };
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(2, SIDE, SIDE, CHANNELS));
    stk_window window = stk_window_make(3, 3);
    for (int i = 0; i < 2; i++)
        window.pad_low[i] = window.pad_high[i] = 1;
    for (int i = 0; i < N_LAYERS; i++) {
        const char name[] = {'w', (char)('0' + i), 0};
        stk_shape shape = STK_SHAPE(CHANNELS, 3, 3, CHANNELS);
        stk_value weight = stk_graph_variable(graph, name, STK_F32, shape, (stk_init){STK_INIT_NORMAL, 0.05}, true);
        x = stk_relu(stk_conv2d_raw(x, weight, window));
    }
    stk_value loss = stk_reduce_mean(stk_reduce_mean(stk_flatten(stk_cast_to(x, STK_F32)), 1), 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_options optim = {.optimizer = stk_sgd(.lr = 0.5)};
    expect_ok(stk_optim_build(graph, loss, &optim));
    return graph;
}

/* On the cpu with what it keeps, where the processor has kernels that do. */
static void convolutions_have_the_same_bits(void **state)
{
    (void)state;
    enum { N_X = 2 * 8 * 8 * 128 };
    training t[2];
    float *x = malloc(N_X * sizeof(*x));
    assert_non_null(x);
    for (int i = 0; i < N_X; i++)
        x[i] = (float)((i * 37 + 11) % 17 - 8) / 8;
    for (int k = 0; k < 2; k++) {
        stk_device_config config = {.n_threads = 2};
        stk_compile_options options = {.compute = STK_BF16, .keep_packed = k == 1};
        t[k] = (training){.lr = 0.5f};
        expect_ok(stk_engine_open("cpu", &config, 7, &t[k].engine));
        expect_ok(stk_engine_compile(t[k].engine, make_convolutions(), &options, &t[k].program));
        bind(&t[k], t[k].program);
        stk_program_bind(t[k].program, stk_program_input(t[k].program, "x"), x);
        for (int i = 0; i < N_STEPS; i++)
            expect_ok(stk_program_run(t[k].program));
    }
    if (!stk_program_get_info(t[1].program).packed_bytes) puts("this processor keeps no convolution's weights");
    expect_same(&t[1], &t[0]);
    stk_engine_close(t[0].engine);
    stk_engine_close(t[1].engine);
    free(x);
}

static void whatever_changes_a_variable_is_seen(void **state)
{
    (void)state;
    training kept, plain;
    float other[WIDTH * WIDTH];
    start(&plain, "keeper", packs);
    start(&kept, "keeper", keeps);
    add_program(&kept, true, keeps, &kept.eval);
    add_program(&plain, true, packs, &plain.eval);
    assert_int_equal(stk_program_get_info(kept.eval).packed_bytes, stk_program_get_info(kept.program).packed_bytes);
    for (int i = 0; i < N_STEPS; i++) {
        run_both(&kept, &plain, true);
        run_both(&kept, &plain, false);
    }
    expect_same(&kept, &plain);
    for (int i = 0; i < WIDTH * WIDTH; i++)
        other[i] = (float)(i % 5 - 2) / 4;
    expect_ok(stk_engine_write_variable(kept.engine, 0, other));
    expect_ok(stk_engine_write_variable(plain.engine, 0, other));
    run_both(&kept, &plain, true);
    memcpy(stk_engine_variable(kept.engine, 0).view.data, other, sizeof(other));
    memcpy(stk_engine_variable(plain.engine, 0).view.data, other, sizeof(other));
    stk_engine_changed(kept.engine);
    run_both(&kept, &plain, true);
    expect_same(&kept, &plain);
    stk_engine_close(kept.engine);
    stk_engine_close(plain.engine);
}

static void evaluation_makes_them_once(void **state)
{
    (void)state;
    training t;
    start(&t, "keeper", packs);
    add_program(&t, false, keeps, &t.eval);
    n_made = 0;
    float first = run(&t, t.eval);
    assert_int_equal(n_made, 2);
    for (int i = 0; i < N_STEPS; i++)
        assert_true(run(&t, t.eval) == first);
    assert_int_equal(n_made, 2);
    run(&t, t.program);
    assert_true(run(&t, t.eval) != first);
    assert_int_equal(n_made, 4);
    stk_engine_close(t.engine);
}

static void programs_share_them(void **state)
{
    (void)state;
    training kept, plain;
    start(&plain, "keeper", packs);
    start(&kept, "keeper", keeps);
    add_program(&plain, false, packs, &plain.eval);
    add_program(&kept, false, keeps, &kept.eval);
    assert_int_not_equal(stk_program_get_info(kept.eval).packed_bytes, 0);
    for (int i = 0; i < N_STEPS; i++) {
        run_both(&kept, &plain, true);
        n_made = n_read = 0;
        run_both(&kept, &plain, false);
        assert_int_equal(n_made, 0);
        assert_int_equal(n_read, 3);
    }
    /* What one program frees, the other still has. */
    stk_engine_discard(kept.engine, kept.program);
    assert_true(run(&kept, kept.eval) == run(&plain, plain.eval));
    add_program(&kept, true, keeps, &kept.program);
    run_both(&kept, &plain, true);
    run_both(&kept, &plain, false);
    /* With the last one they go, and the next one chooses again. */
    stk_engine_discard(kept.engine, kept.program);
    stk_engine_discard(kept.engine, kept.eval);
    add_program(&kept, false, keeps, &kept.eval);
    add_program(&kept, true, keeps, &kept.program); /* "second" backward is nobody's now: it is cast */
    assert_true(stk_program_get_info(kept.program).packed_bytes < stk_program_get_info(kept.eval).packed_bytes);
    run_both(&kept, &plain, true);
    run_both(&kept, &plain, false);
    expect_same(&kept, &plain);
    stk_engine_close(kept.engine);
    stk_engine_close(plain.engine);
}

static void no_room_no_copy(void **state)
{
    (void)state;
    training t;
    stk_compile_options options = keeps;
    start(&t, "keeper", packs);
    stk_program_info info = stk_program_get_info(t.program);
    stk_engine_close(t.engine);
    options.memory_limit_bytes = info.arena_bytes + info.variable_bytes + info.program_bytes;
    start(&t, "keeper", options);
    assert_int_equal(stk_program_get_info(t.program).packed_bytes, 0);
    assert_int_equal(stk_program_get_info(t.program).arena_bytes, info.arena_bytes);
    run(&t, t.program);
    assert_int_equal(n_made, 0);
    stk_engine_close(t.engine);
    options.memory_limit_bytes += 3 * (info.arena_bytes + info.variable_bytes);
    start(&t, "keeper", options);
    assert_int_not_equal(stk_program_get_info(t.program).packed_bytes, 0);
    stk_engine_close(t.engine);
}

static void what_failed_is_made_again(void **state)
{
    (void)state;
    for (int at = 1; at <= 2 * N_KEPT; at++) {
        training kept, plain;
        start(&plain, "keeper", packs);
        start(&kept, "keeper", keeps);
        fails_at = at;
        assert_int_equal(stk_program_run(kept.program), STK_IO);
        /* Where it fails depends on what was updated by then: start over with the plain one's variables. */
        for (int i = 0; i < stk_engine_n_variables(plain.engine); i++)
            expect_ok(stk_engine_write_variable(kept.engine, i, stk_engine_variable(plain.engine, i).view.data));
        run_both(&kept, &plain, true);
        expect_same(&kept, &plain);
        stk_engine_close(kept.engine);
        stk_engine_close(plain.engine);
    }
}

int main(void)
{
    keeper = stk_device_class_cpu;
    keeper.name = "keeper";
    keeper.kernel = find_kernel;
    keeper.open = open_keeper;
    stk_device_add(&keeper);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_the_same_bits),
        cmocka_unit_test(convolutions_have_the_same_bits),
        cmocka_unit_test(whatever_changes_a_variable_is_seen),
        cmocka_unit_test(evaluation_makes_them_once),
        cmocka_unit_test(programs_share_them),
        cmocka_unit_test(no_room_no_copy),
        cmocka_unit_test(what_failed_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Whole networks through compile and run: the same numbers fused and not, on the reference device and on the cpu;
 * memory as planned; updates in place; programs that share variables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/engine.h"
#include "optim/update.h"
#include "stoker/nn/nn.h"

enum { BATCH = 6, SIDE = 8, CLASSES = 3, N_STEPS = 4 };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

/* A network with a bit of everything; returned graph is bound to BATCH, its loss is the output "loss". */
static stk_graph *make_graph(stk_optimizer optimizer, double clip_norm)
{
    stk_model *model = stk_model_new("test");
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 2);
    x = stk_relu(stk_batch_norm(stk_conv2d(x, 5, 3)));
    stk_value shortcut = x;
    x = stk_relu(stk_add(stk_batch_norm(stk_conv2d(x, 5, 3)), shortcut));
    x = stk_max_pool(x, 2);
    x = stk_dropout(stk_gelu(stk_conv2d(x, 4, 1)), 0.25);
    x = stk_avg_pool(x, 2);
    x = stk_dense(stk_flatten(x), CLASSES);
    stk_model_loss(model, stk_cross_entropy_smooth(x, stk_model_label(model), 0.1));
    expect_ok(stk_model_status(model));
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), BATCH);
    stk_value loss = stk_reduce_mean(stk_value_of(graph, stk_model_get_loss(model).id), 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_options options = {.optimizer = optimizer, .clip_norm = clip_norm};
    expect_ok(stk_optim_build(graph, loss, &options));
    stk_model_free(model);
    return graph;
}

typedef struct inputs {
    float image[BATCH * SIDE * SIDE * 2];
    int32_t label[BATCH];
    float lr;
    int64_t step, seed, sample;
} inputs;

static void bind_inputs(stk_program *program, const inputs *in)
{
    stk_program_bind(program, stk_program_input(program, "image"), in->image);
    stk_program_bind(program, stk_program_input(program, "label"), in->label);
    stk_program_bind(program, stk_program_input(program, "lr"), &in->lr);
    stk_program_bind(program, stk_program_input(program, "step"), &in->step);
    stk_program_bind(program, stk_program_input(program, "seed"), &in->seed);
    stk_program_bind(program, stk_program_input(program, "sample"), &in->sample);
}

static void fill_inputs(inputs *in)
{
    stk_rng rng = stk_rng_make(1, 2, 3, 4);
    for (int i = 0; i < BATCH * SIDE * SIDE * 2; i++)
        in->image[i] = stk_rng_normal(&rng);
    for (int i = 0; i < BATCH; i++)
        in->label[i] = (int32_t)stk_rng_below(&rng, CLASSES);
    in->lr = 0.05f;
    in->seed = 7;
}

/* Losses of N_STEPS steps on one batch; returns how many values were recomputed. */
static int train_with(const char *device, const stk_compile_options *options, stk_optimizer optimizer, double clip_norm,
                      double *losses)
{
    stk_engine *engine;
    stk_program *program;
    stk_device_config config = {.n_threads = 2};
    inputs in;
    fill_inputs(&in);
    expect_ok(stk_engine_open(device, &config, 11, &engine));
    expect_ok(stk_engine_compile(engine, make_graph(optimizer, clip_norm), options, &program));
    bind_inputs(program, &in);
    for (in.step = 0; in.step < N_STEPS; in.step++) {
        in.sample = in.step * BATCH;
        expect_ok(stk_program_run(program));
        losses[in.step] = (double)*(const float *)stk_program_output(program, "loss", NULL);
    }
    stk_program_info info = stk_program_get_info(program);
    assert_int_equal(info.used_bytes, info.arena_bytes);
    assert_true(info.arena_bytes >= info.lower_bound_bytes);
    stk_engine_close(engine);
    return info.n_recomputed;
}

static void train_in(stk_dtype compute, const char *device, bool no_fuse, stk_optimizer optimizer, double clip_norm,
                     double *losses)
{
    stk_compile_options options = {.no_fuse = no_fuse, .compute = compute};
    train_with(device, &options, optimizer, clip_norm, losses);
}

static void train_on(const char *device, bool no_fuse, stk_optimizer optimizer, double clip_norm, double *losses)
{
    train_in(STK_F32, device, no_fuse, optimizer, clip_norm, losses);
}

static void expect_close(const double *a, const double *b)
{
    for (int i = 0; i < N_STEPS; i++)
        if (!(a[i] - b[i] < 2e-4 && b[i] - a[i] < 2e-4)) fail_msg("step %d: loss %.9g and %.9g", i, a[i], b[i]);
}

static void devices_agree(void **state)
{
    (void)state;
    const stk_optimizer optimizers[] = {stk_sgd(.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-3),
                                        stk_adamw(.lr = 0.05), stk_sgd(.lr = 0.05)};
    for (int i = 0; i < 3; i++) {
        double plain[N_STEPS], fused[N_STEPS], cpu[N_STEPS], cpu_plain[N_STEPS];
        double clip = i == 2 ? 0.5 : 0;
        train_on("reference", true, optimizers[i], clip, plain);
        train_on("reference", false, optimizers[i], clip, fused);
        train_on("cpu", false, optimizers[i], clip, cpu);
        train_on("cpu", true, optimizers[i], clip, cpu_plain);
        expect_close(plain, fused);
        expect_close(plain, cpu);
        expect_close(plain, cpu_plain);
        assert_true(plain[N_STEPS - 1] < plain[0]);
    }
}

static void same_bits_twice(void **state)
{
    (void)state;
    double a[N_STEPS], b[N_STEPS];
    train_on("cpu", false, stk_adam(.lr = 0.01), 1, a);
    train_on("cpu", false, stk_adam(.lr = 0.01), 1, b);
    assert_memory_equal(a, b, sizeof(a));
}

/* What is recomputed has the same bits, whatever is chosen. */
static void recompute_changes_no_bit(void **state)
{
    (void)state;
    double kept[N_STEPS], again[N_STEPS];
    stk_optimizer optimizer = stk_sgd(.lr = 0.05, .momentum = 0.9);
    train_on("cpu", false, optimizer, 0, kept);
    int n_before = 0;
    for (int most = 1; most < 12; most++) {
        stk_compile_options options = {.recompute = "auto", .recompute_most = most};
        int n = train_with("cpu", &options, optimizer, 0, again);
        assert_true(n >= n_before && n <= most);
        assert_memory_equal(kept, again, sizeof(kept));
        n_before = n;
    }
    assert_true(n_before >= 1);
    const char *const layers[] = {"conv2d,batch_norm,conv2d_1,batch_norm_1", "conv2d_2,batch_norm_1,dense",
                                  "conv2d,conv2d_1,conv2d_2,batch_norm,batch_norm_1,dense"};
    for (int i = 0; i < 3; i++) {
        stk_compile_options options = {.recompute = layers[i]};
        assert_true(train_with("cpu", &options, optimizer, 0, again) > 0);
        assert_memory_equal(kept, again, sizeof(kept));
        options.no_fuse = true;
        train_with("cpu", &options, optimizer, 0, again);
    }
}

static void unknown_layers_are_named(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.recompute = "conv2d,conv"};
    expect_ok(stk_engine_open("cpu", NULL, 0, &engine));
    assert_int_equal(stk_engine_compile(engine, make_graph(stk_sgd(.lr = 0.1), 0), &options, &program), STK_NOT_FOUND);
    assert_non_null(strstr(stk_error_text(), "'conv'"));
    stk_engine_close(engine);
}

static void updates_work_in_place(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    expect_ok(stk_engine_open("cpu", NULL, 0, &engine));
    expect_ok(stk_engine_compile(engine, make_graph(stk_adam(.lr = 0.1), 0), NULL, &program));
    stk_text text = {0};
    stk_program_print(program, &text);
    assert_null(strstr(stk_text_get(&text), "copy"));
    stk_text_free(&text);
    stk_engine_close(engine);
}

static void readers_see_old_content(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(4), (stk_init){STK_INIT_CONSTANT, 3}, false);
    stk_value next = stk_shift_by(w, 1);
    stk_graph_update(graph, w, next);
    stk_graph_output(graph, "old", stk_scale_by(w, 2));
    stk_graph_output(graph, "both", stk_add(stk_reduce_sum(next, 0), stk_reduce_sum(w, 0)));
    expect_ok(stk_engine_open("cpu", NULL, 0, &engine));
    expect_ok(stk_engine_compile(engine, graph, NULL, &program));
    for (int i = 0; i < 3; i++) {
        expect_ok(stk_program_run(program));
        assert_true(*(const float *)stk_program_output(program, "old", NULL) == 2.0f * (float)(3 + i));
        assert_true(*(const float *)stk_program_output(program, "both", NULL) == 4.0f * (float)(7 + 2 * i));
        assert_true(*(const float *)stk_engine_variable(engine, 0).view.data == (float)(4 + i));
    }
    stk_engine_close(engine);
}

static void limits_and_errors(void **state)
{
    (void)state;
    stk_engine *engine;
    stk_program *program;
    stk_compile_options options = {.memory_limit_bytes = 1000};
    expect_ok(stk_engine_open("cpu", NULL, 0, &engine));
    assert_int_equal(stk_engine_compile(engine, make_graph(stk_sgd(.lr = 0.1), 0), &options, &program), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "largest buffers"));
    /* 65,536 numbers are 0.25 MiB to the byte, which is rounded to what is even. */
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(1, 256));
    stk_value weight =
        stk_graph_variable(graph, "weight", STK_F32, STK_SHAPE(256, 256), (stk_init){STK_INIT_CONSTANT, 0.5}, true);
    stk_graph_output(graph, "y", stk_matmul(x, weight, false, false));
    assert_int_equal(stk_engine_compile(engine, graph, &options, &program), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "(0.2 for parameters and optimiser state, 0.0 for activations"));
    expect_ok(stk_engine_compile(engine, make_graph(stk_sgd(.lr = 0.1), 0), NULL, &program));
    assert_int_equal(stk_program_run(program), STK_INVALID); /* inputs are not bound */
    assert_non_null(strstr(stk_error_text(), "'image'"));
    stk_engine_close(engine);
    assert_int_equal(stk_engine_open("cuda", NULL, 0, &engine), STK_NO_DEVICE);
}

/* Losses in 16 bits follow those in f32 within some units of rounding, 2^-9 and 2^-12: on both devices, fused or not.
 */
static void narrow_losses_follow(void **state)
{
    (void)state;
    const stk_optimizer adam = stk_adamw(.lr = 0.01);
    const stk_dtype dtypes[] = {STK_BF16, STK_F16};
    const double units[] = {0x1p-9, 0x1p-12};
    const char *const devices[] = {"reference", "cpu"};
    double exact[N_STEPS], losses[N_STEPS];
    train_on("reference", false, adam, 0, exact);
    for (int i = 0; i < 8; i++) {
        bool fused = i & 1;
        int d = i / 4;
        train_in(dtypes[d], devices[i / 2 % 2], !fused, adam, 0, losses);
        for (int j = 0; j < N_STEPS; j++)
            if (!(fabs(losses[j] - exact[j]) < 16 * units[d] * exact[j]))
                fail_msg("%s on %s, step %d: loss %.9g, in f32 %.9g", stk_dtype_name(dtypes[d]), devices[i / 2 % 2], j,
                         losses[j], exact[j]);
        assert_true(memcmp(losses, exact, sizeof(losses)) != 0);
    }
}

/* relu(batch_norm(conv2d(x, w) + own, ..)) for evaluation, with or without a bias of its own; where the convolution is
 * an output too, it stays as it is. */
static void evaluate_conv(const char *device, stk_dtype dtype, bool has_own, bool conv_is_read, float *y)
{
    enum { C = 3, O = 5, PIXELS = BATCH * SIDE * SIDE };
    static float x[PIXELS * C], w[O * 9 * C], stat[5][O];
    const char *names[] = {"scale", "bias", "mean", "var", "own"};
    stk_rng rng = stk_rng_make(5, 6, 7, 8);
    for (int i = 0; i < PIXELS * C; i++)
        x[i] = stk_rng_normal(&rng);
    for (int i = 0; i < O * 9 * C; i++)
        w[i] = stk_rng_normal(&rng) / 4;
    for (int i = 0; i < 5 * O; i++)
        stat[i / O][i % O] = 0.5f + (float)(i * 7 % 5) / 3; /* the variance is positive */
    stk_engine *engine;
    stk_program *program;
    stk_graph *graph = stk_graph_new();
    stk_window window = stk_window_make(3, 3);
    stk_compile_options options = {.inference = true};
    stk_device_config config = {.n_threads = 2};
    stk_attrs attrs = stk_attrs_zero();
    attrs.batch_norm.eps = 1e-5;
    stk_value image = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(BATCH, SIDE, SIDE, C));
    stk_value weight = stk_graph_input(graph, "w", STK_F32, STK_SHAPE(O, 3, 3, C));
    window.pad_low[0] = window.pad_high[0] = window.pad_low[1] = window.pad_high[1] = 1;
    stk_value in[5] = {stk_conv2d_raw(stk_cast_to(image, dtype), stk_cast_to(weight, dtype), window)};
    for (int i = 0; i < 4; i++)
        in[1 + i] = stk_graph_input(graph, names[i], STK_F32, STK_SHAPE(O));
    if (conv_is_read) stk_graph_output(graph, "conv", in[0]);
    if (has_own) in[0] = stk_add(in[0], stk_cast_to(stk_graph_input(graph, "own", STK_F32, STK_SHAPE(O)), dtype));
    stk_value out = stk_relu(stk_graph_add(graph, STK_OP_batch_norm, &attrs, in, 5));
    stk_graph_output(graph, "y", stk_cast_to(out, STK_F32));
    expect_ok(stk_engine_open(device, &config, 11, &engine));
    expect_ok(stk_engine_compile(engine, graph, &options, &program));
    stk_program_bind(program, stk_program_input(program, "x"), x);
    stk_program_bind(program, stk_program_input(program, "w"), w);
    for (int i = 0; i < 4 + has_own; i++)
        stk_program_bind(program, stk_program_input(program, names[i]), stat[i]);
    expect_ok(stk_program_run(program));
    memcpy(y, stk_program_output(program, "y", NULL), PIXELS * O * sizeof(*y));
    stk_engine_close(engine);
}

static void evaluation_scales_convolutions(void **state)
{
    (void)state;
    enum { N = BATCH * SIDE * SIDE * 5 };
    static float want[N], y[N];
    const char *devices[] = {"reference", "cpu"};
    const stk_dtype dtypes[] = {STK_F32, STK_BF16};
    for (int i = 0; i < 8; i++) {
        const char *device = devices[i / 2 % 2];
        bool is_half = dtypes[i % 2] == STK_BF16;
        evaluate_conv(device, dtypes[i % 2], i >= 4, true, want);
        evaluate_conv(device, dtypes[i % 2], i >= 4, false, y);
        for (int k = 0; k < N; k++)
            if (!(fabsf(y[k] - want[k]) <= (is_half ? 0.05f : 2e-5f)))
                fail_msg("%s, %s%s: element %d is %g, not %g", device, stk_dtype_name(dtypes[i % 2]),
                         i >= 4 ? ", bias" : "", k, (double)y[k], (double)want[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_agree),
        cmocka_unit_test(narrow_losses_follow),
        cmocka_unit_test(same_bits_twice),
        cmocka_unit_test(updates_work_in_place),
        cmocka_unit_test(readers_see_old_content),
        cmocka_unit_test(recompute_changes_no_bit),
        cmocka_unit_test(unknown_layers_are_named),
        cmocka_unit_test(limits_and_errors),
        cmocka_unit_test(evaluation_scales_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

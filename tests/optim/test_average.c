/* The running mean of weights: torch's values, on both devices; and training with it: weights go their way untouched,
 * and evaluation takes the mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "golden/average_golden.h"
#include "optim/update.h"
#include "train/trainer.h"

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s", stk_error_text());
}

/* --- the arithmetic --- */

static float *find_variable(stk_engine *engine, const char *name)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++)
        if (!strcmp(stk_engine_variable(engine, i).name, name)) return stk_engine_variable(engine, i).view.data;
    fail_msg("no variable '%s'", name);
    return NULL;
}

/* A loss whose gradient for "w" is the input "grad". */
static stk_graph *make_graph(stk_average average)
{
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(N), (stk_init){STK_INIT_CONSTANT, 0}, true);
    stk_value loss = stk_reduce_sum(stk_mul(w, stk_graph_input(graph, "grad", STK_F32, STK_SHAPE(N))), 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_options options = {.optimizer = stk_sgd(.lr = golden_lr), .average = average};
    expect_ok(stk_optim_build(graph, loss, &options));
    expect_ok(stk_graph_verify(graph));
    return graph;
}

static void expect_near(const float *got, const float *want, const char *what, int step)
{
    for (int i = 0; i < N; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-6f))
            fail_msg("step %d: %s[%d] is %.9g, not %.9g", step, what, i, (double)got[i], (double)want[i]);
}

static void as_torch(void **state)
{
    static const char *const devices[] = {"reference", "cpu"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        stk_engine *engine;
        stk_program *program;
        float lr = (float)golden_lr;
        expect_ok(stk_engine_open(devices[d], NULL, 1, &engine));
        expect_ok(stk_engine_compile(engine, make_graph((stk_average){.decay = golden_decay}), NULL, &program));
        stk_program_bind(program, stk_program_input(program, "lr"), &lr);
        memcpy(find_variable(engine, "w.raw"), golden_first, sizeof(golden_first));
        for (int step = 0; step < N_STEPS; step++) {
            stk_program_bind(program, stk_program_input(program, "grad"), golden_grads + step * N);
            expect_ok(stk_program_run(program));
            expect_near(find_variable(engine, "w.raw"), golden_weights + step * N, "weight", step);
            expect_near(find_variable(engine, "w"), golden_means + step * N, "mean", step);
        }
        stk_engine_close(engine);
    }
}

/* Decays of 0 (the copy), 2/11, 3/12 and so on up to the settled one. */
static void warmup_begins_with_less(void **state)
{
    stk_engine *engine;
    stk_program *program;
    float lr = (float)golden_lr, want[N] = {0};
    (void)state;
    expect_ok(stk_engine_open("cpu", NULL, 1, &engine));
    expect_ok(stk_engine_compile(engine, make_graph((stk_average){.decay = 0.3, .warmup = true}), NULL, &program));
    stk_program_bind(program, stk_program_input(program, "lr"), &lr);
    memcpy(find_variable(engine, "w.raw"), golden_first, sizeof(golden_first));
    for (int step = 0; step < N_STEPS; step++) {
        float decay = step == 0 ? 0 : fminf(0.3f, (1 + (float)step) / (10 + (float)step));
        for (int i = 0; i < N; i++)
            want[i] = decay * want[i] + (1 - decay) * golden_weights[step * N + i];
        stk_program_bind(program, stk_program_input(program, "grad"), golden_grads + step * N);
        expect_ok(stk_program_run(program));
        expect_near(find_variable(engine, "w"), want, "mean", step);
    }
    stk_engine_close(engine);
}

static void a_decay_of_one_is_refused(void **state)
{
    (void)state;
    stk_graph *graph = stk_graph_new();
    stk_value w = stk_graph_variable(graph, "w", STK_F32, STK_SHAPE(N), (stk_init){STK_INIT_CONSTANT, 0}, true);
    stk_optim_options options = {.optimizer = stk_sgd(.lr = 1), .average = {.decay = 1}};
    assert_int_equal(stk_optim_build(graph, stk_reduce_sum(w, 0), &options), STK_INVALID);
    stk_graph_free(graph);
}

/* --- training --- */

enum { N_SAMPLES = 64, WIDTH = 12, N_CLASSES = 4 };

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    float *x = out[0];
    (void)user;
    for (int k = 0; k < WIDTH; k++)
        x[k] = (float)((i_sample * 31 + k * 7 + i_sample * k) % 101) / 50 - 1;
    *(int32_t *)out[1] = (int32_t)(i_sample % N_CLASSES);
    return STK_OK;
}

static stk_dataset *make_dataset(void)
{
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(WIDTH), NULL}, {"label", STK_I32, {0}, NULL}};
    stk_dataset *dataset = stk_dataset_function(N_SAMPLES, fields, 2, make_sample, NULL);
    stk_dataset_batch(dataset, 16, true);
    return dataset;
}

static stk_trainer *make_trainer(double decay)
{
    stk_model *model = stk_model_new("small");
    stk_value x = stk_model_input_named(model, "image", STK_F32, STK_SHAPE(WIDTH));
    x = stk_dense(stk_relu(stk_dense(x, 8)), N_CLASSES);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    stk_trainer *trainer = stk_trainer_new(model, make_dataset(), stk_adam(.lr = 0.05));
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    config.average.decay = decay;
    stk_trainer_configure(trainer, &config);
    expect_ok(stk_trainer_prepare(trainer, 2));
    return trainer;
}

static stk_tensor_view tensor(stk_trainer *trainer, const char *name)
{
    const stk_named_tensor *tensors;
    size_t n;
    expect_ok(stk_trainer_tensors(trainer, &tensors, &n));
    for (size_t i = 0; i < n; i++)
        if (!strcmp(tensors[i].name, name)) return tensors[i].view;
    fail_msg("no tensor '%s'", name);
    return (stk_tensor_view){0};
}

static bool same(stk_tensor_view a, stk_tensor_view b)
{
    return !memcmp(a.data, b.data, stk_desc_bytes(a.desc));
}

static double evaluate(stk_trainer *trainer)
{
    stk_metrics metrics;
    stk_dataset *dataset = make_dataset();
    expect_ok(stk_trainer_evaluate(trainer, dataset, &metrics));
    stk_dataset_free(dataset);
    return metrics.loss;
}

static void weights_go_their_way_and_the_mean_is_evaluated(void **state)
{
    static const char *const names[] = {"dense.weight", "dense.bias", "dense_1.weight", "dense_1.bias"};
    stk_trainer *plain = make_trainer(0), *averaged = make_trainer(0.9);
    char raw[64];
    (void)state;
    assert_true(evaluate(plain) == evaluate(averaged)); /* Before the first step both are what they begin with. */
    expect_ok(stk_trainer_run(plain, 2));
    expect_ok(stk_trainer_run(averaged, 2));
    double of_mean = evaluate(averaged);
    assert_true(of_mean != evaluate(plain));
    for (int i = 0; i < 4; i++) {
        snprintf(raw, sizeof(raw), "%s.raw", names[i]);
        stk_tensor_view weight = tensor(averaged, raw), mean = tensor(averaged, names[i]);
        assert_true(same(weight, tensor(plain, names[i])));
        memcpy(tensor(plain, names[i]).data, mean.data, stk_desc_bytes(mean.desc));
    }
    assert_true(evaluate(plain) == of_mean);
    stk_trainer_free(plain);
    stk_trainer_free(averaged);
}

/* Whoever fills a network's weights before training knows nothing of the mean. */
static void filled_weights_are_trained(void **state)
{
    stk_trainer *plain = make_trainer(0), *averaged = make_trainer(0.9);
    (void)state;
    for (int k = 0; k < 2; k++) {
        stk_tensor_view weight = tensor(k ? averaged : plain, "dense.weight");
        for (int64_t i = 0; i < stk_shape_count(weight.desc.shape); i++)
            ((float *)weight.data)[i] = (float)(i % 7) / 7 - 0.4f;
        expect_ok(stk_trainer_put_tensors(k ? averaged : plain));
    }
    expect_ok(stk_trainer_run(plain, 1));
    expect_ok(stk_trainer_run(averaged, 1));
    assert_true(same(tensor(averaged, "dense.weight.raw"), tensor(plain, "dense.weight")));
    stk_trainer_free(plain);
    stk_trainer_free(averaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_torch),
        cmocka_unit_test(warmup_begins_with_less),
        cmocka_unit_test(a_decay_of_one_is_refused),
        cmocka_unit_test(weights_go_their_way_and_the_mean_is_evaluated),
        cmocka_unit_test(filled_weights_are_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

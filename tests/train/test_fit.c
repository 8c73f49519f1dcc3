/* Training within a memory limit: the plan fits, and the losses stay what they are without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/clock.h"
#include "base/rng.h"
#include "stoker/data/dataset.h"
#include "stoker/nn/transformer.h"
#include "stoker/train/trainer.h"
#include "train/trainer_state.h"

enum { SIDE = 16, N = 96, BATCH = 24, N_STEPS = N / BATCH };
static float images[N * SIDE * SIDE * 3];
static int32_t labels[N];

typedef struct seen {
    double loss[N_STEPS];
    size_t peak, program;
    int64_t n_recomputed, n_micro, micro;
    int n_warnings;
    double epoch_s;
} seen;

static void on_event(void *user, const stk_train_event *event)
{
    seen *s = user;
    if (event->kind == STK_EVENT_STEP) s->loss[event->step - 1] = event->loss;
    s->n_warnings += event->kind == STK_EVENT_WARNING;
    if (event->kind == STK_EVENT_EPOCH) s->epoch_s = event->epoch_s;
    if (event->kind == STK_EVENT_PLAN) {
        s->peak = event->peak_planned_bytes;
        s->program = event->program_bytes;
        s->n_recomputed = event->n_recomputed;
        s->n_micro = event->n_micro;
        s->micro = event->micro_batch;
    }
}

static bool with_norm; /* each test sets it */

static stk_trainer *make_trainer(void)
{
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(SIDE, SIDE, 3), images},
                                      {"label", STK_I32, {0}, labels}};
    stk_dataset *data = stk_dataset_arrays(N, fields, 2);
    stk_dataset_batch(data, BATCH, true);
    stk_model *model = stk_model_new("small");
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 3);
    stk_scope_push(stk_model_graph(model), "block");
    for (int i = 0; i < 5; i++)
        x = stk_relu(with_norm ? stk_batch_norm(stk_conv2d(x, 8, 3)) : stk_conv2d(x, 8, 3));
    stk_scope_pop(stk_model_graph(model));
    x = stk_dense(stk_dropout(stk_global_pool(x), 0.1), 10);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    return stk_trainer_new(model, data, stk_sgd(.lr = 0.05, .momentum = 0.9));
}

enum { N_WORDS = 4000, WIDTH = 32, LENGTH = 32, N_TEXTS = 8 * N_STEPS };

/* Most bytes are the embedding's, as in GPT-2: its gradient comes from the head first and from the first layer last. */
static stk_trainer *make_language_model(void)
{
    static int32_t tokens[N_TEXTS * LENGTH], targets[N_TEXTS * LENGTH];
    const stk_array_field fields[] = {{"tokens", STK_I32, STK_SHAPE(LENGTH), tokens},
                                      {"targets", STK_I32, STK_SHAPE(LENGTH), targets}};
    stk_transformer_config config = {
        .layers = 4, .heads = 2, .width = WIDTH, .vocabulary = N_WORDS, .positions = LENGTH};
    for (int i = 0; i < N_TEXTS * LENGTH; i++) {
        tokens[i] = (i * 7919) % N_WORDS;
        targets[i] = ((i + 1) * 7919) % N_WORDS;
    }
    stk_dataset *data = stk_dataset_arrays(N_TEXTS, fields, 2);
    stk_dataset_batch(data, N_TEXTS / N_STEPS, true);
    stk_model *model = stk_model_new("text");
    stk_value x = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(LENGTH));
    stk_value y = stk_model_input_named(model, "targets", STK_I32, STK_SHAPE(LENGTH));
    stk_model_loss(model, stk_gpt2(x, y, &config));
    return stk_trainer_new(model, data, stk_sgd(.lr = 0.05, .momentum = 0.9));
}

static bool with_text; /* each test sets it */

static stk_status train(stk_trainer_config config, seen *out)
{
    stk_trainer *trainer = with_text ? make_language_model() : make_trainer();
    *out = (seen){.peak = 0};
    config.n_threads = 2;
    config.on_event = on_event;
    config.event_user = out;
    stk_trainer_configure(trainer, &config);
    stk_status status = stk_trainer_run(trainer, 1);
    stk_trainer_free(trainer);
    return status;
}

static int set_up(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(1, 2, 3, 4);
    for (int i = 0; i < N * SIDE * SIDE * 3; i++)
        images[i] = stk_rng_normal(&rng);
    for (int i = 0; i < N; i++)
        labels[i] = i % 10;
    return 0;
}

static void limits_are_met_with_the_same_bits(void **state)
{
    (void)state;
    seen all, less;
    stk_trainer_config config = stk_trainer_config_default();
    with_norm = true;
    assert_int_equal(train(config, &all), STK_OK);
    assert_int_equal(all.n_recomputed, 0);
    int64_t n_before = 0;
    for (int percent = 100; percent >= 70; percent -= 10) {
        config.memory_limit_bytes = all.peak / 100 * (size_t)percent + 100 + all.program;
        if (train(config, &less) != STK_OK) fail_msg("%d %%: %s", percent, stk_error_text());
        assert_true(less.peak + less.program <= config.memory_limit_bytes);
        assert_true(percent == 100 ? less.n_recomputed == 0 : less.n_recomputed >= n_before);
        assert_memory_equal(all.loss, less.loss, sizeof(all.loss));
        n_before = less.n_recomputed;
    }
    assert_true(n_before > 0);
    config.recompute = "none";
    assert_int_equal(train(config, &less), STK_NO_MEMORY);
    config.recompute = "block";
    config.memory_limit_bytes = 0;
    assert_int_equal(train(config, &less), STK_OK);
    assert_true(less.n_recomputed > 0);
    assert_memory_equal(all.loss, less.loss, sizeof(all.loss));
}

static void expect_close(const seen *a, const seen *b)
{
    for (int i = 0; i < N_STEPS; i++)
        if (fabs(a->loss[i] - b->loss[i]) > 2e-6 * fabs(a->loss[i]))
            fail_msg("step %d: loss %.9g and %.9g", i, a->loss[i], b->loss[i]);
}

/* Dropout's masks too: the losses would differ widely otherwise. 5, 7 and 23 do not divide the batch. */
static void micro_batches_give_the_same_losses(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 5, 6, 7, 12, 23};
    seen all, parts;
    stk_trainer_config config = stk_trainer_config_default();
    with_norm = false;
    config.clip_norm = 0.5;
    assert_int_equal(train(config, &all), STK_OK);
    assert_int_equal(all.n_micro, 1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        config.micro_batch = sizes[i];
        if (train(config, &parts) != STK_OK) fail_msg("%d: %s", (int)sizes[i], stk_error_text());
        assert_int_equal(parts.n_micro, (BATCH + sizes[i] - 1) / sizes[i]);
        expect_close(&all, &parts);
        assert_int_equal(parts.n_warnings, 0);
    }
    assert_true(all.peak > parts.peak);
    config.micro_batch = 0;
    config.accumulate = 4;
    assert_int_equal(train(config, &parts), STK_OK);
    assert_int_equal(parts.micro, BATCH / 4);
    config.micro_batch = 2;
    assert_int_equal(train(config, &parts), STK_INVALID);
    config.accumulate = 0;
    config.micro_batch = BATCH + 1;
    assert_int_equal(train(config, &parts), STK_INVALID);
}

/* Less and less memory: micro-batches come in, the losses stay; then nothing helps any more. */
static void search_divides_the_batch(void **state)
{
    (void)state;
    seen all, less;
    stk_trainer_config config = stk_trainer_config_default();
    with_norm = false;
    assert_int_equal(train(config, &all), STK_OK);
    for (int percent = 90; percent >= 30; percent -= 15) {
        config.memory_limit_bytes = all.peak / 100 * (size_t)percent + all.program;
        if (train(config, &less) != STK_OK) fail_msg("%d %%: %s", percent, stk_error_text());
        assert_true(less.peak + less.program <= config.memory_limit_bytes);
        expect_close(&all, &less);
    }
    assert_true(less.n_micro > 1 && BATCH % less.micro == 0);
    config.memory_limit_bytes = 4000;
    assert_int_equal(train(config, &less), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "largest buffers"));
}

/* Sums over micro-batches are there all the time, so that the peak is where activations are, not at the updates. */
static void micro_batches_and_recompute_go_together(void **state)
{
    (void)state;
    seen all, parts, less;
    stk_trainer_config config = stk_trainer_config_default();
    with_text = true;
    assert_int_equal(train(config, &all), STK_OK);
    config.micro_batch = 1;
    assert_int_equal(train(config, &parts), STK_OK);
    assert_int_equal(parts.n_recomputed, 0);
    /* Parameters, velocities and sums; a sequence's logits; and the embedding's gradient only as the sum. */
    size_t embedding = N_WORDS * WIDTH * sizeof(float), layer = (12 * WIDTH + 13) * WIDTH * sizeof(float);
    assert_in_range(parts.peak, 3 * embedding, 3 * (embedding + 4 * layer) + 2 * embedding);
    config.memory_limit_bytes = parts.peak / 100 * 95 + parts.program;
    if (train(config, &less) != STK_OK) fail_msg("%s", stk_error_text());
    with_text = false;
    assert_true(less.peak + less.program <= config.memory_limit_bytes && less.n_recomputed > 0);
    assert_memory_equal(parts.loss, less.loss, sizeof(parts.loss));
    expect_close(&all, &less);
}

static void batch_norm_is_divided_only_when_told(void **state)
{
    (void)state;
    seen all, parts;
    stk_trainer_config config = stk_trainer_config_default();
    with_norm = true;
    assert_int_equal(train(config, &all), STK_OK);
    config.memory_limit_bytes = all.peak / 5 + all.program;
    assert_int_equal(train(config, &parts), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "micro_batch"));
    config.micro_batch = 2;
    assert_int_equal(train(config, &parts), STK_OK);
    assert_true(parts.peak + parts.program <= config.memory_limit_bytes);
    assert_int_equal(parts.n_warnings, 1);
}

/* Seconds of an epoch, and tokens where a sample is a text. */
static void what_ran_is_told(void **state)
{
    (void)state;
    for (int is_text = 0; is_text < 2; is_text++) {
        seen s = {.epoch_s = -1};
        stk_train_result result;
        stk_trainer_config config = stk_trainer_config_default();
        stk_trainer *trainer = is_text ? make_language_model() : make_trainer();
        config.n_threads = 2;
        config.on_event = on_event;
        config.event_user = &s;
        stk_trainer_configure(trainer, &config);
        int64_t start = stk_clock_ns();
        assert_int_equal(stk_trainer_run(trainer, 1), STK_OK);
        double all_s = (double)(stk_clock_ns() - start) * 1e-9;
        assert_true(s.epoch_s > 0 && s.epoch_s <= all_s);
        stk_trainer_get_result(trainer, &result);
        assert_true(result.samples_per_s > 0);
        assert_true(result.tokens_per_s == (is_text ? result.samples_per_s * LENGTH : 0));
        stk_trainer_free(trainer);
    }
}

/* Batches of 6 MiB: the pipeline gets a quarter of the limit at most, and is not asked where the step leaves plenty. */
static void a_pipeline_gets_its_share(void **state)
{
    (void)state;
    enum { LARGE = 512, N_LARGE = 16, N_BATCH = 2 };
    static float pixels[N_LARGE * LARGE * LARGE * 3];
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(LARGE, LARGE, 3), pixels},
                                      {"label", STK_I32, {0}, labels}};
    const size_t mib = (size_t)1 << 20, counted = 3 * mib;
    size_t least, wanted, bounded;
    stk_trainer *trainer = NULL;
    /* The second limit leaves plenty by the share alone, and too little to be sure of. */
    for (int way = 0; way < 2; way++) {
        stk_dataset *data = stk_dataset_arrays(N_LARGE, fields, 2);
        stk_dataset_batch(data, N_BATCH, true);
        stk_model *model = stk_model_new("flat");
        stk_value x = stk_relu(stk_conv2d(stk_model_input(model, STK_F32, LARGE, LARGE, 3), 4, 3));
        stk_model_loss(model, stk_cross_entropy(stk_dense(stk_global_pool(x), 10), stk_model_label(model)));
        stk_trainer_free(trainer);
        trainer = stk_trainer_new(model, data, stk_sgd(.lr = 0.05));
        stk_trainer_config config = stk_trainer_config_default();
        config.n_threads = 2;
        config.max_steps = 1;
        config.memory_limit_bytes = (way ? 257 : 2048) * mib;
        stk_trainer_configure(trainer, &config);
        assert_int_equal(stk_trainer_run(trainer, 1), STK_OK);
        if (way)
            assert_true(trainer->reserved_bytes > 0);
        else
            assert_int_equal(trainer->reserved_bytes, 0);
    }
    trainer->config.memory_limit_bytes = 2048 * mib;
    assert_int_equal(stk_memory_ask_pipeline(trainer, &least, &wanted), STK_OK);
    size_t held = trainer->data_bytes, limit = 4 * (wanted - mib + counted - held);
    assert_true(least < wanted - mib);
    trainer->config.memory_limit_bytes = limit;
    assert_int_equal(stk_memory_ask_pipeline(trainer, &least, &bounded), STK_OK);
    assert_int_equal(bounded, wanted - mib);
    stk_trainer_free(trainer);
}

/* Without a limit on all. */
static void data_have_a_limit_of_their_own(void **state)
{
    (void)state;
    seen s;
    stk_trainer_config config = stk_trainer_config_default();
    with_norm = with_text = false;
    config.data_memory_bytes = 1000;
    assert_int_equal(train(config, &s), STK_NO_MEMORY);
    config.data_memory_bytes = (size_t)64 << 20;
    assert_int_equal(train(config, &s), STK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(micro_batches_give_the_same_losses),
        cmocka_unit_test(search_divides_the_batch),
        cmocka_unit_test(what_ran_is_told),
        cmocka_unit_test(a_pipeline_gets_its_share),
        cmocka_unit_test(data_have_a_limit_of_their_own),
        cmocka_unit_test(micro_batches_and_recompute_go_together),
        cmocka_unit_test(batch_norm_is_divided_only_when_told),
        cmocka_unit_test(limits_are_met_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

/* Training within a memory limit: the plan fits, and the losses stay what they are without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "stoker/dataset.h"
#include "stoker/trainer.h"

enum { SIDE = 16, N = 96, BATCH = 24, N_STEPS = N / BATCH };
static float images[N * SIDE * SIDE * 3];
static int32_t labels[N];

typedef struct seen {
    double loss[N_STEPS];
    size_t peak;
    int64_t n_recomputed;
} seen;

static void on_event(void *user, const stk_train_event *event)
{
    seen *s = user;
    if (event->kind == STK_EVENT_STEP) s->loss[event->step - 1] = event->loss;
    if (event->kind == STK_EVENT_PLAN) {
        s->peak = event->peak_planned_bytes;
        s->n_recomputed = event->n_recomputed;
    }
}

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
        x = stk_relu(stk_batch_norm(stk_conv2d(x, 8, 3)));
    stk_scope_pop(stk_model_graph(model));
    x = stk_dense(stk_dropout(stk_global_pool(x), 0.1), 10);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    return stk_trainer_new(model, data, stk_sgd(.lr = 0.05, .momentum = 0.9));
}

static stk_status train(stk_trainer_config config, seen *out)
{
    stk_trainer *trainer = make_trainer();
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
    assert_int_equal(train(config, &all), STK_OK);
    assert_int_equal(all.n_recomputed, 0);
    int64_t n_before = 0;
    for (int percent = 100; percent >= 70; percent -= 10) {
        config.memory_limit_bytes = all.peak / 100 * (size_t)percent + 100;
        if (train(config, &less) != STK_OK) fail_msg("%d %%: %s", percent, stk_error_text());
        assert_true(less.peak <= config.memory_limit_bytes);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_met_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

/* One sample that is not a number: training stops and says where, or passes over its batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "stoker/train/trainer.h"

enum { N_SAMPLES = 64, WIDTH = 6, BATCH = 8, BAD = 29 };

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    float *x = out[0];
    for (int k = 0; k < WIDTH; k++)
        x[k] = (float)((i_sample * 31 + k * 7) % 101) / 101;
    if (i_sample == *(const int64_t *)user) x[3] = NAN;
    *(int32_t *)out[1] = (int32_t)(i_sample % 4);
    return STK_OK;
}

static stk_status train(stk_on_nan on_nan, int64_t bad, int64_t micro_batch, stk_train_result *result)
{
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(WIDTH), NULL}, {"label", STK_I32, {0}, NULL}};
    stk_dataset *dataset = stk_dataset_function(N_SAMPLES, fields, 2, make_sample, &bad);
    stk_dataset_batch(dataset, BATCH, true);
    stk_model *model = stk_model_new("small");
    stk_value x = stk_dense(stk_model_input_named(model, "image", STK_F32, STK_SHAPE(WIDTH)), 8);
    stk_model_loss(model, stk_cross_entropy(stk_dense(stk_relu(x), 4), stk_model_label(model)));
    stk_trainer *trainer = stk_trainer_new(model, dataset, stk_adam(.lr = 0.01));
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    config.on_nan = on_nan;
    config.micro_batch = micro_batch;
    stk_trainer_configure(trainer, &config);
    stk_status status = stk_trainer_run(trainer, 3);
    stk_trainer_get_result(trainer, result);
    stk_trainer_free(trainer);
    return status;
}

static void stopping_says_where(void **state)
{
    stk_train_result result;
    (void)state;
    assert_int_equal(train(STK_ON_NAN_STOP, BAD, 0, &result), STK_INVALID);
    const char *const parts[] = {"at step 4", "at step 3", "of 4 parameters", "'dense_1.bias'", "on_nan: skip"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!strstr(stk_error_text(), parts[i])) fail_msg("no \"%s\" in: %s", parts[i], stk_error_text());
}

static void skipping_passes_over_the_batch(void **state)
{
    (void)state;
    for (int64_t micro = 0; micro <= 4; micro += 4) {
        stk_train_result result;
        if (train(STK_ON_NAN_SKIP, BAD, micro, &result) != STK_OK) fail_msg("%s", stk_error_text());
        assert_int_equal(result.n_skipped_steps, 3); /* one in each epoch */
        assert_int_equal(result.train.n_samples, N_SAMPLES - BATCH);
        assert_true(isfinite(result.train.loss));
        if (train(STK_ON_NAN_SKIP, -1, micro, &result) != STK_OK) fail_msg("%s", stk_error_text());
        assert_int_equal(result.n_skipped_steps, 0);
        assert_int_equal(result.train.n_samples, N_SAMPLES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopping_says_where),
        cmocka_unit_test(skipping_passes_over_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Training on samples that a generator makes: like on those made by number, where it says how many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "stoker/data/custom.h"
#include "stoker/train/trainer.h"

enum { N_SAMPLES = 96, SIDE = 8 };

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    float *image = out[0];
    (void)user;
    for (int k = 0; k < SIDE * SIDE; k++)
        image[k] = (float)((i_sample * 31 + k * 7) % 101) / 101;
    *(int32_t *)out[1] = (int32_t)(i_sample % 10);
    return STK_OK;
}

static stk_status begin(void *user, int64_t i_epoch)
{
    (void)i_epoch;
    *(int64_t *)user = 0;
    return STK_OK;
}

static stk_status next(void *user, void *const *out, bool *ended)
{
    int64_t *i = user;
    *ended = *i == N_SAMPLES;
    return *ended ? STK_OK : make_sample(NULL, (*i)++, out);
}

static const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(SIDE, SIDE, 1), NULL},
                                         {"label", STK_I32, {0}, NULL}};

static stk_dataset *make_dataset(int64_t *at, int64_t n_samples)
{
    const stk_sample_generator generator = {.n_samples = n_samples, .begin = begin, .next = next, .user = at};
    stk_dataset *dataset = at ? stk_dataset_generator(fields, 2, &generator)
                              : stk_dataset_function(n_samples, fields, 2, make_sample, NULL);
    stk_dataset_batch(dataset, 16, true);
    return dataset;
}

/* Takes the data set. */
static stk_trainer *make_trainer(stk_dataset *dataset)
{
    stk_model *model = stk_model_new("small");
    stk_value x = stk_dense(stk_flatten(stk_model_input(model, STK_F32, SIDE, SIDE, 1)), 10);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    stk_trainer *trainer = stk_trainer_new(model, dataset, stk_sgd(.lr = 0.1));
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 2;
    stk_trainer_configure(trainer, &config);
    return trainer;
}

static void training_is_the_same_as_by_number(void **state)
{
    (void)state;
    double loss[2];
    for (int k = 0; k < 2; k++) {
        int64_t at, at_eval;
        stk_metrics metrics;
        stk_trainer *trainer = make_trainer(make_dataset(k ? &at : NULL, N_SAMPLES));
        if (stk_trainer_run(trainer, 3) != STK_OK) fail_msg("%s", stk_error_text());
        stk_dataset *dataset = make_dataset(k ? &at_eval : NULL, N_SAMPLES);
        if (stk_trainer_evaluate(trainer, dataset, &metrics) != STK_OK) fail_msg("%s", stk_error_text());
        assert_int_equal(metrics.n_samples, N_SAMPLES);
        loss[k] = metrics.loss;
        stk_dataset_free(dataset);
        stk_trainer_free(trainer);
    }
    assert_true(loss[0] == loss[1]);
}

static void an_unknown_count_is_refused(void **state)
{
    (void)state;
    int64_t at, at_eval;
    stk_metrics metrics;
    stk_trainer *trainer = make_trainer(make_dataset(&at, 0));
    assert_int_equal(stk_trainer_run(trainer, 1), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "n_samples"));
    stk_trainer_free(trainer);
    trainer = make_trainer(make_dataset(&at, N_SAMPLES));
    stk_dataset *dataset = make_dataset(&at_eval, 0);
    assert_int_equal(stk_trainer_evaluate(trainer, dataset, &metrics), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "n_samples"));
    stk_dataset_free(dataset);
    stk_trainer_free(trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_is_the_same_as_by_number),
        cmocka_unit_test(an_unknown_count_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

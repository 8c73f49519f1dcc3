/* Local steps and an outer one: what NumPy makes of the same, and what does not go with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "golden/diloco_golden.h"
#include "stoker/data/dataset.h"
#include "stoker/train/trainer.h"
#include "train/trainer_state.h"

enum { N_STEPS = DILOCO_N / DILOCO_BATCH * DILOCO_EPOCHS };

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    (void)user;
    for (int k = 0; k < DILOCO_FEATURES; k++)
        ((float *)out[0])[k] = (float)((double)((i_sample * 7 + k * 3) % 11) / 11 - 0.4);
    *(int32_t *)out[1] = (int32_t)(i_sample * 5 % 7 % DILOCO_CLASSES);
    return STK_OK;
}

static stk_trainer *make_trainer(void)
{
    static const stk_array_field fields[] = {
        {.name = "features", .dtype = STK_F32, .sample = STK_SHAPE(DILOCO_FEATURES)},
        {.name = "label", .dtype = STK_I32}};
    stk_dataset *data = stk_dataset_function(DILOCO_N, fields, 2, make_sample, NULL);
    stk_dataset_batch(data, DILOCO_BATCH, true);
    stk_model *model = stk_model_new("regression");
    stk_value x = stk_graph_input(stk_model_graph(model), "features", STK_F32, STK_SHAPE(STK_ANY, DILOCO_FEATURES));
    x = stk_dense(x, DILOCO_CLASSES);
    stk_model_output(model, x);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    return stk_trainer_new(model, data, stk_sgd(.lr = (float)DILOCO_LR, .momentum = (float)DILOCO_MOMENTUM));
}

static void on_event(void *user, const stk_train_event *event)
{
    if (event->kind == STK_EVENT_STEP) ((double *)user)[event->step - 1] = event->loss;
}

static stk_trainer_config make_config(int n_replicas, double *loss)
{
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    config.n_replicas = n_replicas;
    config.outer = (stk_outer){DILOCO_EVERY, DILOCO_OUTER_LR, DILOCO_OUTER_MOMENTUM};
    config.on_event = on_event;
    config.event_user = loss;
    return config;
}

static const stk_named_tensor *find(const stk_trainer *trainer, const char *end)
{
    for (size_t i = 0; i < trainer->n_tensors; i++) {
        size_t n = strlen(trainer->tensor[i].name), n_end = strlen(end);
        if (n >= n_end && !strcmp(trainer->tensor[i].name + n - n_end, end)) return &trainer->tensor[i];
    }
    fail_msg("there is no '%s'", end);
    return NULL;
}

static double *at(double *all, int c, int k)
{
    return &all[c * (DILOCO_FEATURES + 1) + k];
}

static void copy_weights(const stk_trainer *trainer, double *all, bool sets)
{
    float *weight = find(trainer, ".weight")->view.data, *bias = find(trainer, ".bias")->view.data;
    for (int c = 0; c < DILOCO_CLASSES; c++)
        for (int k = 0; k <= DILOCO_FEATURES; k++) {
            float *x = k == DILOCO_FEATURES ? &bias[c] : &weight[c * DILOCO_FEATURES + k];
            if (sets)
                *x = (float)*at(all, c, k);
            else
                *at(all, c, k) = *x;
        }
}

static void steps_are_numpys(void **state)
{
    (void)state;
    double weight[DILOCO_CLASSES * (DILOCO_FEATURES + 1)], loss[N_STEPS];
    stk_trainer *trainer = make_trainer();
    stk_trainer_config config = make_config(2, loss);
    stk_trainer_configure(trainer, &config);
    assert_int_equal(stk_trainer_prepare(trainer, DILOCO_EPOCHS), STK_OK);
    for (int c = 0; c < DILOCO_CLASSES; c++)
        for (int k = 0; k <= DILOCO_FEATURES; k++)
            *at(weight, c, k) = (c * 5 + k * 2) % 7 / 7.0 - 0.5;
    copy_weights(trainer, weight, true);
    assert_int_equal(stk_trainer_put_tensors(trainer), STK_OK);
    if (stk_trainer_run(trainer, DILOCO_EPOCHS) != STK_OK) fail_msg("%s", stk_error_text());
    for (int i = 0; i < N_STEPS; i++)
        if (!(fabs(loss[i] - diloco_loss[i]) <= 1e-5)) fail_msg("step %d: %.9g, %.9g", i + 1, loss[i], diloco_loss[i]);
    for (int r = 0; r < 2; r++) { /* Both have the same. */
        copy_weights(r ? trainer->replica[0].trainer : trainer, weight, false);
        for (size_t i = 0; i < sizeof(weight) / sizeof(weight[0]); i++)
            if (!(fabs(weight[i] - diloco_weight[i]) <= 2e-5))
                fail_msg("replica %d, weight %zu: %.9g, %.9g", r, i, weight[i], diloco_weight[i]);
    }
    stk_trainer_free(trainer);
}

/* Every step with rate 1 and no momentum, plain SGD: the mean of the weights is the step along the mean gradient. */
static void means_of_each_step_are_plain_training(void **state)
{
    (void)state;
    double plain[N_STEPS], meant[N_STEPS];
    for (int k = 0; k < 2; k++) {
        stk_trainer *trainer = make_trainer();
        trainer->optimizer.momentum = 0;
        stk_trainer_config config = make_config(k ? 4 : 0, k ? meant : plain);
        config.outer = (stk_outer){.every = k, .lr = 1};
        stk_trainer_configure(trainer, &config);
        if (stk_trainer_run(trainer, DILOCO_EPOCHS) != STK_OK) fail_msg("%s", stk_error_text());
        stk_trainer_free(trainer);
    }
    for (int i = 0; i < N_STEPS; i++)
        if (!(fabs(plain[i] - meant[i]) <= 1e-5)) fail_msg("step %d: %.9g, %.9g", i + 1, plain[i], meant[i]);
}

static void what_does_not_go_with_it_is_refused(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        stk_trainer *trainer = make_trainer();
        stk_trainer_config config = make_config(2, NULL);
        if (k == 0) config.average.decay = 0.9;
        if (k == 1) config.lookahead = stk_lookahead_default();
        if (k == 2) config.shared = STK_SHARED_OPTIMIZER;
        if (k == 3) config.outer.lr = 0;
        stk_trainer_configure(trainer, &config);
        assert_int_equal(stk_trainer_prepare(trainer, 1), k == 3 ? STK_INVALID : STK_UNSUPPORTED);
        stk_trainer_free(trainer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_numpys),
        cmocka_unit_test(means_of_each_step_are_plain_training),
        cmocka_unit_test(what_does_not_go_with_it_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

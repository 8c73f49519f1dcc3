/* Gradients that are kept, and their norm: a plain step of SGD is parameter - rate * gradient, so that what is shown
 * can be checked against what was done; also clipped, in micro-batches and with a loss scale.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "train/trainer.h"

enum { N_SAMPLES = 32, WIDTH = 6, BATCH = 8, MOST = 8, MOST_ELEMENTS = 64 };
static const double RATE = 0.5;

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    (void)user;
    float *x = out[0];
    for (int k = 0; k < WIDTH; k++)
        x[k] = (float)((i_sample * 31 + k * 7) % 101) / 101;
    *(int32_t *)out[1] = (int32_t)(i_sample % 4);
    return STK_OK;
}

/* What a run shows. */
typedef struct seen {
    stk_trainer *trainer;
    double clip_norm;
    float before[MOST][MOST_ELEMENTS];
    int n_steps, n_gradients; /* n_gradients: compared */
} seen;

static void save(void *user, const stk_batch *batch)
{
    seen *s = user;
    const stk_named_tensor *tensor;
    size_t n;
    (void)batch;
    assert_int_equal(stk_trainer_tensors(s->trainer, &tensor, &n), STK_OK);
    assert_in_range(n, 1, MOST);
    for (size_t i = 0; i < n; i++)
        if (tensor[i].view.desc.dtype == STK_F32)
            memcpy(s->before[i], tensor[i].view.data, (size_t)stk_shape_count(tensor[i].view.desc.shape) * 4);
}

static stk_status compare(void *user, stk_trainer *trainer, const stk_train_event *event)
{
    seen *s = user;
    const stk_named_tensor *tensor;
    size_t n, n_elements;
    double sum = 0;
    assert_int_equal(stk_trainer_tensors(trainer, &tensor, &n), STK_OK);
    double share = s->clip_norm > 0 ? fmin(1, s->clip_norm / (event->grad_norm + 1e-6)) : 1;
    for (size_t i = 0; i < n; i++) {
        const float *grad = stk_trainer_gradient(trainer, tensor[i].name, &n_elements), *now = tensor[i].view.data;
        if (!grad) continue;
        assert_int_equal(n_elements, stk_shape_count(tensor[i].view.desc.shape));
        for (size_t k = 0; k < n_elements; k++) {
            sum += (double)grad[k] * grad[k];
            double want = s->before[i][k] - RATE * share * grad[k];
            if (!(fabs(now[k] - want) < 1e-6)) fail_msg("'%s' is %g, not %g", tensor[i].name, now[k], want);
        }
        s->n_gradients++;
    }
    if (s->n_gradients > 0) assert_true(sum > 0 && fabs(event->grad_norm / sqrt(sum) - 1) < 1e-5);
    assert_true(event->step_s > 0 && event->wait_s >= 0 && event->wait_s <= event->step_s);
    s->n_steps++;
    return STK_OK;
}

/* How many gradients were seen in four steps. config NULL: of a trainer that was never configured. */
static int train(const stk_trainer_config *config)
{
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(WIDTH), NULL}, {"label", STK_I32, {0}, NULL}};
    stk_dataset *dataset = stk_dataset_function(N_SAMPLES, fields, 2, make_sample, NULL);
    stk_dataset_batch(dataset, BATCH, true);
    stk_model *model = stk_model_new("small");
    stk_value x = stk_dense(stk_model_input_named(model, "image", STK_F32, STK_SHAPE(WIDTH)), 8);
    stk_model_loss(model, stk_cross_entropy(stk_dense(stk_relu(x), 4), stk_model_label(model)));
    stk_trainer *trainer = stk_trainer_new(model, dataset, stk_sgd(.lr = RATE));
    seen s = {.trainer = trainer, .clip_norm = config ? config->clip_norm : 0};
    stk_trainer_hooks hooks = {.on_batch = save, .after_step = compare, .user = &s};
    if (config) stk_trainer_configure(trainer, config);
    stk_trainer_set_hooks(trainer, &hooks);
    if (stk_trainer_run(trainer, 1) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(s.n_steps, N_SAMPLES / BATCH);
    if (config && config->loss_scale.kind == STK_LOSS_SCALE_FIXED) {
        stk_train_result result;
        stk_trainer_get_result(trainer, &result);
        assert_true(result.loss_scale == config->loss_scale.initial);
    }
    stk_trainer_free(trainer);
    return s.n_gradients;
}

static void what_is_shown_is_what_was_done(void **state)
{
    (void)state;
    stk_trainer_config config = stk_trainer_config_default();
    assert_int_equal(train(NULL), 0);
    assert_int_equal(train(&config), 0); /* nothing is kept that nobody asked for */
    config.keep_gradients = config.grad_norm = true;
    assert_int_equal(train(&config), 16); /* four of four steps */
    config.clip_norm = 0.1;
    config.grad_norm = false; /* clipping tells it in any case */
    assert_int_equal(train(&config), 16);
    config.micro_batch = 2;
    assert_int_equal(train(&config), 16);
    config.micro_batch = 0;
    config.loss_scale = (stk_loss_scale){.kind = STK_LOSS_SCALE_FIXED, .initial = 1024};
    assert_int_equal(train(&config), 16); /* divided by the scale again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_shown_is_what_was_done)};
    return cmocka_run_group_tests_name("train/gradients", tests, NULL, NULL);
}

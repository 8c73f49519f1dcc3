/* Replicas: the losses of one device on the same batches, dropout's masks and weighted losses included; every replica
 * with the same variables, bit for bit; exact metrics; stops and failures that nobody waits for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "stoker/data/dataset.h"
#include "stoker/train/trainer.h"
#include "train/trainer_state.h"

enum { SIDE = 8, N = 96, BATCH = 24, N_EPOCHS = 2, N_STEPS = N / BATCH * N_EPOCHS, N_VALID = 37, N_CLASSES = 7 };

typedef struct setting {
    bool norm, sync, weighted;
    int64_t accumulate;
    int n_replicas, strict;
    const char *device; /* NULL: cpu */
    stk_lr_scaling scaling;
    float lr; /* 0: 0.1 */
} setting;

typedef struct seen {
    double loss[N_STEPS];
    stk_metrics train, valid;
    int64_t n_steps;
    stk_trainer *stops_at_3; /* stopped after step 3; NULL: not */
} seen;

static int64_t bad_sample; /* that cannot be made; -1: none */

/* Rows of three dimensions that tell something of the label, some labels left out of the loss. */
static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    uint32_t label = stk_philox(1, 2, (uint64_t)i_sample).v[0] % N_CLASSES;
    (void)user;
    if (i_sample == bad_sample) return stk_fail(STK_CORRUPT, "sample %lld is bad", (long long)i_sample);
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        ((float *)out[0])[i] = (float)(stk_philox(3, (uint64_t)i_sample, (uint64_t)i).v[0] >> 8) * 0x1p-24f +
                               0.3f * (float)(label == (uint32_t)i % N_CLASSES);
    *(int32_t *)out[1] = (int32_t)label;
    *(float *)out[2] = (float)(stk_philox(5, 6, (uint64_t)i_sample).v[0] % 3);
    return STK_OK;
}

static stk_dataset *make_data(int64_t n, bool drop)
{
    static const stk_array_field fields[] = {{.name = "image", .dtype = STK_F32, .sample = STK_SHAPE(SIDE, SIDE, 3)},
                                             {.name = "label", .dtype = STK_I32},
                                             {.name = "counts", .dtype = STK_F32}};
    stk_dataset *data = stk_dataset_function(n, fields, 3, make_sample, NULL);
    stk_dataset_shuffle(data, 7);
    stk_dataset_batch(data, drop ? BATCH : 10, drop);
    return data;
}

static stk_trainer *make_trainer(const setting *s)
{
    stk_model *model = stk_model_new("small");
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 3);
    for (int i = 0; i < 2; i++)
        x = stk_relu(s->norm ? stk_batch_norm(stk_conv2d(x, 8, 3)) : stk_conv2d(x, 8, 3));
    x = stk_dense(stk_dropout(stk_global_pool(x), 0.3), N_CLASSES);
    stk_model_output(model, x);
    stk_value loss = stk_cross_entropy(x, stk_model_label(model));
    stk_model_loss(model, loss);
    if (s->weighted)
        stk_model_loss_weight(model, stk_graph_input(stk_model_graph(model), "counts", STK_F32, STK_SHAPE(STK_ANY)));
    /* Not Adam, which makes much of the rounding in gradients that are 0, as those of a bias before a batch norm. */
    return stk_trainer_new(model, make_data(N, true), stk_sgd(.lr = s->lr > 0 ? s->lr : 0.1f, .momentum = 0.9f));
}

static void on_event(void *user, const stk_train_event *event)
{
    seen *s = user;
    if (event->kind == STK_EVENT_STEP) {
        s->loss[event->step - 1] = event->loss;
        s->n_steps = event->step;
        if (s->stops_at_3 && event->step == 3) stk_trainer_stop(s->stops_at_3);
    }
    if (event->kind == STK_EVENT_EPOCH) {
        s->train = event->train;
        s->valid = event->valid;
    }
}

static stk_status run(const setting *s, stk_trainer *trainer, const stk_dataset *valid, seen *out)
{
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    config.n_replicas = s->n_replicas;
    config.lr_scaling = s->scaling;
    config.sync_batch_norm = s->sync;
    config.accumulate = s->accumulate;
    config.strict = s->strict;
    config.device = s->device;
    config.clip_norm = 1;
    config.valid = valid;
    config.on_event = on_event;
    config.event_user = out;
    stk_trainer_configure(trainer, &config);
    return stk_trainer_run(trainer, N_EPOCHS);
}

static seen train(setting s)
{
    seen out = {.n_steps = 0};
    stk_dataset *valid = make_data(N_VALID, false);
    stk_trainer *trainer = make_trainer(&s);
    if (run(&s, trainer, valid, &out) != STK_OK) fail_msg("%d replicas: %s", s.n_replicas, stk_error_text());
    /* Every replica has the first one's variables. */
    for (int r = 1; r < s.n_replicas; r++)
        for (size_t i = 0; i < trainer->n_tensors; i++) {
            const stk_named_tensor *own = &trainer->tensor[i], *other = &trainer->replica[r - 1].trainer->tensor[i];
            assert_string_equal(own->name, other->name);
            if (!strcmp(own->name, STK_METRIC_SUMS)) continue;
            assert_memory_equal(own->view.data, other->view.data, stk_desc_bytes(own->view.desc));
        }
    stk_metrics again;
    assert_int_equal(stk_trainer_evaluate(trainer, valid, &again), STK_OK);
    assert_int_equal(again.n_samples, N_VALID);
    assert_true(again.loss == out.valid.loss && again.accuracy == out.valid.accuracy);
    stk_trainer_free(trainer);
    stk_dataset_free(valid);
    return out;
}

static void expect_same(const seen *a, const seen *b, double tolerance)
{
    for (int i = 0; i < N_STEPS; i++)
        if (!(fabs(a->loss[i] - b->loss[i]) <= tolerance * fabs(a->loss[i])))
            fail_msg("step %d: %.9g and %.9g", i + 1, a->loss[i], b->loss[i]);
    assert_int_equal(a->train.n_samples, b->train.n_samples);
    assert_int_equal(b->valid.n_samples, N_VALID);
    if (!(fabs(a->train.loss - b->train.loss) <= tolerance * a->train.loss))
        fail_msg("training: %.9g and %.9g", a->train.loss, b->train.loss);
    if (!(fabs(a->valid.loss - b->valid.loss) <= tolerance * a->valid.loss))
        fail_msg("validation: %.9g and %.9g", a->valid.loss, b->valid.loss);
    assert_true(fabs(a->valid.accuracy - b->valid.accuracy) < 1e-9);
}

static void losses_are_those_of_one(void **state)
{
    static const int counts[] = {2, 3, 4, 8};
    (void)state;
    bad_sample = -1;
    for (int k = 0; k < 8; k++) {
        setting s = {.norm = k & 1, .sync = k & 1, .weighted = k & 2, .accumulate = k & 4 && !(k & 1) ? 3 : 0};
        setting one = s;
        one.accumulate = 0;
        seen alone = train(one);
        for (int i = 0; i < 4; i++) {
            if (s.accumulate && BATCH / counts[i] < 3) continue;
            s.n_replicas = counts[i];
            seen many = train(s);
            expect_same(&alone, &many, 2e-5);
        }
    }
}

/* Two devices whose kernels are others' work, of which each must have one sum for all numbers of replicas. */
static void strict_has_the_same_bits(void **state)
{
    static const char *const devices[] = {"cpu", "reference"};
    (void)state;
    bad_sample = -1;
    for (int k = 0; k < 4; k++) {
        seen one[2];
        for (int d = 0; d < 2; d++) {
            setting s = {.norm = k & 1, .weighted = k & 2, .strict = 8, .device = devices[d]};
            one[d] = train(s);
            for (s.n_replicas = 2; s.n_replicas <= 8; s.n_replicas *= 2) {
                seen many = train(s);
                assert_memory_equal(one[d].loss, many.loss, sizeof(many.loss));
                expect_same(&one[d], &many, 2e-5);
            }
        }
        expect_same(&one[0], &one[1], 2e-4);
        seen plain = train((setting){.norm = k & 1, .weighted = k & 2, .accumulate = 8});
        if (!(k & 1)) expect_same(&plain, &one[0], 2e-5); /* else its running statistics are others */
    }
}

/* Statistics of shares are others than those of the batch, and the running ones are still the same everywhere. */
static void batch_norm_by_share_differs(void **state)
{
    (void)state;
    bad_sample = -1;
    seen alone = train((setting){.norm = true}), two = train((setting){.norm = true, .n_replicas = 2});
    assert_true(fabs(alone.loss[1] - two.loss[1]) > 1e-6);
    for (int i = 0; i < N_STEPS; i++)
        assert_true(fabs(alone.loss[i] - two.loss[i]) < 0.2);
}

static void the_rate_grows_with_their_number(void **state)
{
    (void)state;
    bad_sample = -1;
    seen plain = train((setting){.n_replicas = 4});
    seen linear = train((setting){.n_replicas = 4, .lr = 0.025f, .scaling = STK_LR_SCALING_LINEAR});
    seen root = train((setting){.n_replicas = 4, .lr = 0.05f, .scaling = STK_LR_SCALING_SQRT});
    assert_memory_equal(plain.loss, linear.loss, sizeof(plain.loss));
    assert_memory_equal(plain.loss, root.loss, sizeof(plain.loss));
}

/* Stopped by the caller of one, all end behind the same step; going on gives what was missing. */
static void a_stop_is_agreed_on(void **state)
{
    (void)state;
    bad_sample = -1;
    setting s = {.n_replicas = 3};
    seen whole = train(s), part = {.n_steps = 0};
    stk_dataset *valid = make_data(N_VALID, false);
    stk_trainer *trainer = make_trainer(&s);
    part.stops_at_3 = trainer;
    assert_int_equal(run(&s, trainer, valid, &part), STK_INTERRUPTED);
    assert_in_range(part.n_steps, 3, 4);
    for (int r = 1; r < s.n_replicas; r++)
        assert_int_equal(trainer->replica[r - 1].trainer->state.step, trainer->state.step);
    part.stops_at_3 = NULL;
    trainer->stop = 0;
    assert_int_equal(stk_trainer_run(trainer, N_EPOCHS), STK_OK);
    assert_memory_equal(part.loss, whole.loss, sizeof(whole.loss));
    stk_trainer_free(trainer);
    stk_dataset_free(valid);
}

/* One replica meets a sample that cannot be read: the run ends with that, and nobody waits for it. */
static void a_failure_ends_all(void **state)
{
    (void)state;
    for (int64_t sample = 5; sample < N; sample += 30) {
        bad_sample = sample;
        setting s = {.n_replicas = 4};
        seen out = {.n_steps = 0};
        stk_trainer *trainer = make_trainer(&s);
        assert_int_equal(run(&s, trainer, NULL, &out), STK_CORRUPT);
        char want[64];
        snprintf(want, sizeof(want), "sample %lld is bad", (long long)sample);
        assert_non_null(strstr(stk_error_text(), want));
        stk_trainer_free(trainer);
    }
}

/* Records that one replica has met count for all, each once. */
static void skipped_records_are_those_of_all(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n += 3) {
        setting s = {.n_replicas = n};
        seen out = {.n_steps = 0};
        stk_trainer *trainer = make_trainer(&s);
        stk_train_result result;
        bad_sample = 35;
        stk_dataset_on_error((stk_dataset *)trainer->dataset, STK_ON_ERROR_REPLACE);
        if (run(&s, trainer, NULL, &out) != STK_OK) fail_msg("%s", stk_error_text());
        stk_trainer_get_result(trainer, &result);
        assert_int_equal(result.n_skipped, 1);
        assert_non_null(strstr(stk_trainer_skipped(trainer, 0), "sample 35 is bad"));
        assert_null(stk_trainer_skipped(trainer, 1));
        stk_trainer_free(trainer);
    }
}

/* After a failure a trainer trains again, with the losses of one that never failed. */
static void a_failure_is_over_when_its_cause_is(void **state)
{
    (void)state;
    setting s = {.n_replicas = 4};
    seen part = {.n_steps = 0};
    bad_sample = -1;
    seen whole = train(s);
    bad_sample = 35;
    stk_dataset *valid = make_data(N_VALID, false);
    stk_trainer *trainer = make_trainer(&s);
    assert_int_equal(run(&s, trainer, valid, &part), STK_CORRUPT);
    assert_int_equal(stk_trainer_run(trainer, N_EPOCHS), STK_CORRUPT);
    bad_sample = -1;
    if (stk_trainer_run(trainer, N_EPOCHS) != STK_OK) fail_msg("%s", stk_error_text());
    assert_memory_equal(part.loss, whole.loss, sizeof(whole.loss));
    stk_trainer_free(trainer);
    stk_dataset_free(valid);
    /* Refused with one configuration, it takes another. */
    seen out = {.n_steps = 0};
    trainer = make_trainer(&(setting){.n_replicas = 4});
    s.n_replicas = 5;
    assert_int_equal(run(&s, trainer, NULL, &out), STK_INVALID);
    s.n_replicas = 4;
    if (run(&s, trainer, NULL, &out) != STK_OK) fail_msg("%s", stk_error_text());
    assert_memory_equal(out.loss, whole.loss, sizeof(whole.loss));
    stk_trainer_free(trainer);
}

static _Atomic int64_t n_asked;

/* Another one each time it is asked for, as if each replica's processor computed differently. */
static stk_status make_fickle_sample(void *user, int64_t i_sample, void *const *out)
{
    return make_sample(user, i_sample + 1000 * n_asked++, out);
}

/* What each replica finds for itself does not count: all go by the first one. */
static void the_first_judges(void **state)
{
    (void)state;
    bad_sample = -1;
    static const stk_array_field fields[] = {{.name = "image", .dtype = STK_F32, .sample = STK_SHAPE(SIDE, SIDE, 3)},
                                             {.name = "label", .dtype = STK_I32},
                                             {.name = "counts", .dtype = STK_F32}};
    stk_dataset *valid = stk_dataset_function(N_VALID, fields, 3, make_fickle_sample, NULL);
    stk_dataset_batch(valid, 10, true);
    setting s = {.n_replicas = 4};
    seen out = {.n_steps = 0};
    stk_trainer *trainer = make_trainer(&s);
    assert_int_equal(run(&s, trainer, valid, &out), STK_OK);
    for (int r = 1; r < s.n_replicas; r++)
        assert_true(trainer->replica[r - 1].trainer->state.best_value == trainer->state.best_value);
    stk_trainer_free(trainer);
    stk_dataset_free(valid);
}

static void what_cannot_be_shared_is_refused(void **state)
{
    (void)state;
    bad_sample = -1;
    static const struct {
        int n_replicas;
        const char *text;
    } cases[] = {{5, "cannot be shared by 5 replicas"}, {-1, "-1 replicas"}, {65, "65 replicas"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setting s = {.n_replicas = cases[i].n_replicas};
        seen out = {.n_steps = 0};
        stk_trainer *trainer = make_trainer(&s);
        assert_int_equal(run(&s, trainer, NULL, &out), STK_INVALID);
        assert_non_null(strstr(stk_error_text(), cases[i].text));
        stk_trainer_free(trainer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_one),
        cmocka_unit_test(strict_has_the_same_bits),
        cmocka_unit_test(batch_norm_by_share_differs),
        cmocka_unit_test(the_rate_grows_with_their_number),
        cmocka_unit_test(a_stop_is_agreed_on),
        cmocka_unit_test(a_failure_ends_all),
        cmocka_unit_test(skipped_records_are_those_of_all),
        cmocka_unit_test(a_failure_is_over_when_its_cause_is),
        cmocka_unit_test(the_first_judges),
        cmocka_unit_test(what_cannot_be_shared_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

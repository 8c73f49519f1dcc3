/* Training on batches of different lengths: the same losses as with one length, one compilation for each shape, and
 * none for a last batch that is smaller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/program.h"
#include "stoker/data/ragged.h"
#include "train/trainer_state.h"

enum { N_SAMPLES = 40, LONGEST = 12, N_WORDS = 20, N_CLASSES = 3, BATCH = 8, MOST_STEPS = 64 };

static int32_t words[N_SAMPLES * LONGEST], labels[N_SAMPLES];
static int64_t offsets[N_SAMPLES + 1];

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s", stk_error_text());
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < N_SAMPLES; i++) {
        int length = 1 + i * 5 % 8 + i / BATCH; /* the longest of batch b is 8 + b */
        labels[i] = i % N_CLASSES;
        offsets[i + 1] = offsets[i] + length;
        for (int k = 0; k < length; k++)
            words[offsets[i] + k] = 1 + (i * 5 + k * 3) % (N_WORDS - 1); /* 0 is padding */
    }
    return 0;
}

static stk_dataset *make_samples(void)
{
    const stk_ragged_field fields[] = {{.name = "tokens", .dtype = STK_I32, .values = words, .offsets = offsets},
                                       {.name = "label", .dtype = STK_I32, .values = labels}};
    return stk_dataset_ragged(N_SAMPLES, fields, 2);
}

/* length 0: of the longest of each batch. */
static stk_dataset *make_padded(int64_t length, bool drops)
{
    stk_dataset *dataset = make_samples();
    stk_dataset_padded_batch(dataset, BATCH, drops, &(stk_padding){.field = "tokens", .length = length}, 1);
    return dataset;
}

/* The mean of the words' rows, which padding does not change. */
static stk_status make_model(void *user, int64_t length, stk_model **out)
{
    int *n_made = user;
    stk_model *model = *out = stk_model_new("words");
    stk_value tokens = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(length));
    stk_value zero = stk_graph_constant(stk_model_graph(model), STK_I32, (stk_shape){0}, 0);
    stk_value is_word = stk_cast_to(stk_not_equal(tokens, zero), STK_F32);
    stk_value rows = stk_mul(stk_embedding(tokens, N_WORDS, 6), stk_reshape(is_word, STK_SHAPE(STK_ANY, length, 1)));
    stk_value count = stk_reshape(stk_reduce_sum(is_word, 1u << 1), STK_SHAPE(STK_ANY, 1));
    stk_value x = stk_dense(stk_div(stk_reduce_sum(rows, 1u << 1), count), N_CLASSES);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    if (n_made) ++*n_made;
    return STK_OK;
}

typedef struct record {
    double loss[MOST_STEPS];
    int n, n_warnings, n_models;
} record;

static void on_event(void *user, const stk_train_event *event)
{
    record *r = user;
    if (event->kind == STK_EVENT_STEP && r->n < MOST_STEPS) r->loss[r->n++] = event->loss;
    if (event->kind == STK_EVENT_WARNING) r->n_warnings++;
}

/* Takes the data set. */
static stk_trainer *make_trainer(stk_dataset *dataset, const stk_dataset *valid, record *r)
{
    stk_model *model;
    *r = (record){.n = 0};
    expect_ok(make_model(NULL, LONGEST, &model));
    stk_trainer *trainer = stk_trainer_new(model, dataset, stk_adam(.lr = 0.05));
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    config.valid = valid;
    config.on_event = on_event;
    config.event_user = r;
    config.make_model = make_model;
    config.model_user = &r->n_models;
    stk_trainer_configure(trainer, &config);
    return trainer;
}

static void padding_to_the_longest_of_each_changes_no_loss(void **state)
{
    (void)state;
    record fixed, varying;
    stk_train_result result;
    stk_metrics a, b;
    stk_dataset *test = make_padded(0, false);
    stk_trainer *trainer = make_trainer(make_padded(LONGEST, true), NULL, &fixed);
    expect_ok(stk_trainer_run(trainer, 3));
    expect_ok(stk_trainer_evaluate(trainer, test, &a));
    stk_trainer_get_result(trainer, &result);
    assert_int_equal(result.n_shapes, 1);
    stk_trainer_free(trainer);
    trainer = make_trainer(make_padded(0, true), NULL, &varying);
    expect_ok(stk_trainer_run(trainer, 3));
    expect_ok(stk_trainer_evaluate(trainer, test, &b));
    stk_trainer_get_result(trainer, &result);
    assert_int_equal(result.n_shapes, N_SAMPLES / BATCH);
    stk_trainer_free(trainer);
    stk_dataset_free(test);
    assert_int_equal(fixed.n, varying.n);
    for (int i = 0; i < fixed.n; i++)
        if (!(fabs(fixed.loss[i] - varying.loss[i]) <= 1e-5 * fixed.loss[i]))
            fail_msg("step %d: loss %.9g, and %.9g with one length", i, varying.loss[i], fixed.loss[i]);
    assert_int_equal(a.n_samples, N_SAMPLES);
    assert_true(fabs(a.loss - b.loss) <= 1e-5 * a.loss && a.accuracy == b.accuracy);
}

static void buckets_compile_once_for_each_shape(void **state)
{
    (void)state;
    const int64_t boundaries[] = {5, 9, LONGEST + 1}, sizes[] = {8, 6, 4, 1};
    record r;
    stk_train_result result;
    stk_dataset *dataset = make_samples();
    stk_buckets buckets = {.boundaries = boundaries,
                           .batch_sizes = sizes,
                           .n_boundaries = 3,
                           .pad_to_boundary = true,
                           .drop_remainder = true};
    stk_dataset_bucket_batch(dataset, &buckets, NULL, 0);
    stk_trainer *trainer = make_trainer(dataset, NULL, &r);
    expect_ok(stk_trainer_run(trainer, 1));
    stk_trainer_get_result(trainer, &result);
    assert_int_equal(result.n_shapes, 3);
    assert_int_equal(r.n_models, 2); /* the longest is the trainer's own */
    double first = r.loss[0];
    expect_ok(stk_trainer_run(trainer, 6));
    stk_trainer_get_result(trainer, &result);
    assert_int_equal(result.n_shapes, 3);
    assert_true(r.loss[r.n - 1] < first);
    stk_trainer_free(trainer);
}

static int count_lengths(void)
{
    bool met[LONGEST + 1] = {false};
    int n = 0;
    for (int i = 0; i < N_SAMPLES; i++) {
        n += !met[offsets[i + 1] - offsets[i]];
        met[offsets[i + 1] - offsets[i]] = true;
    }
    return n;
}

static void many_shapes_are_reported(void **state)
{
    (void)state;
    record r;
    stk_train_result result;
    stk_dataset *dataset = make_samples();
    stk_dataset_padded_batch(dataset, 1, true, NULL, 0); /* a length for each sample */
    stk_trainer *trainer = make_trainer(dataset, NULL, &r);
    expect_ok(stk_trainer_run(trainer, 1));
    stk_trainer_get_result(trainer, &result);
    assert_int_equal(result.n_shapes, count_lengths());
    assert_int_equal(r.n_warnings, 1);
    stk_trainer_free(trainer);
}

static int count_programs(const stk_trainer *trainer)
{
    int n = 0;
    for (const stk_program *p = trainer->engine->programs; p; p = p->next)
        n++;
    return n;
}

/* Neither in training, which drops it, nor in validation, which fills it up. */
static void a_smaller_last_batch_compiles_nothing(void **state)
{
    (void)state;
    record r;
    stk_train_result result;
    const stk_padding padding = {.field = "tokens", .length = LONGEST};
    stk_dataset *train = make_samples(), *valid = make_samples();
    stk_dataset_take(train, N_SAMPLES - 2);
    stk_dataset_take(valid, N_SAMPLES - 3);
    stk_dataset_padded_batch(train, BATCH, true, &padding, 1);
    stk_dataset_padded_batch(valid, BATCH, false, &padding, 1);
    stk_trainer *trainer = make_trainer(train, valid, &r);
    expect_ok(stk_trainer_run(trainer, 4));
    stk_trainer_get_result(trainer, &result);
    assert_int_equal(count_programs(trainer), 2); /* the step, and validation */
    assert_int_equal(result.valid.n_samples, N_SAMPLES - 3);
    stk_trainer_free(trainer);
    stk_dataset_free(valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_to_the_longest_of_each_changes_no_loss),
        cmocka_unit_test(buckets_compile_once_for_each_shape),
        cmocka_unit_test(many_shapes_are_reported),
        cmocka_unit_test(a_smaller_last_batch_compiles_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

/* Batches of samples of like length: TensorFlow's, for any number of workers and loaders and from any start; by tokens;
 * epochs of few batches; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/fake.h"
#include "data/ragged_make.h"
#include "golden/scan_golden.h"
#include "stoker/data/combine.h"
#include "stoker/data/filter.h"

enum { N_SAMPLES = 1000, MOST_BATCHES = 600 };

static int64_t length_of(int64_t i)
{
    return i * 37 % 89;
}

static stk_dataset *make_samples(int64_t n)
{
    int64_t lengths[N_SAMPLES];
    for (int64_t i = 0; i < n; i++)
        lengths[i] = length_of(i);
    return make_ragged(lengths, n);
}

static const int64_t boundaries[] = {10, 30, 60}, sizes[] = {16, 8, 5, 3};
static const stk_buckets default_value = {.boundaries = boundaries, .batch_sizes = sizes, .n_boundaries = 3};

static stk_dataset *make_shuffled(const stk_buckets *buckets)
{
    stk_dataset *dataset = make_samples(N_SAMPLES);
    stk_dataset_shuffle(dataset, 3);
    stk_dataset_bucket_batch(dataset, buckets, NULL, 0);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    return dataset;
}

static stk_loader *open_with(const stk_dataset *dataset, const stk_loader_config *config)
{
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, config, &loader), STK_OK);
    return loader;
}

static void shape_of(const stk_batch *batch, int64_t *n, int64_t *width)
{
    stk_shape shape;
    assert_int_equal(stk_batch_shape(batch, "tokens", &shape), STK_OK);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.dim[0], stk_batch_count(batch));
    *n = shape.dim[0];
    *width = shape.dim[1];
}

/* The rows are what their samples are, filled up. */
static void check_rows(const stk_batch *batch, int32_t value)
{
    int64_t n, width;
    const int32_t *tokens = stk_batch_data(batch, "tokens"), *id = stk_batch_data(batch, "id"),
                  *length = stk_batch_data(batch, "tokens.length");
    shape_of(batch, &n, &width);
    for (int64_t row = 0; row < n; row++)
        for (int64_t k = 0; k < width; k++)
            assert_int_equal(tokens[row * width + k], k < length[row] ? 100 * id[row] + k : value);
}

/* --- as TensorFlow --- */

static void check_golden(size_t i)
{
    stk_dataset *dataset = make_ragged(golden_buckets[i].length, golden_buckets[i].n_samples);
    const stk_buckets buckets = {.boundaries = golden_buckets[i].boundary,
                                 .batch_sizes = golden_buckets[i].size,
                                 .n_boundaries = golden_buckets[i].n_boundaries,
                                 .pad_to_boundary = golden_buckets[i].to_boundary,
                                 .drop_remainder = golden_buckets[i].drop};
    const stk_padding padding = {.value = -1};
    stk_dataset_bucket_batch(dataset, &buckets, &padding, 1);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_n_batches(dataset), golden_buckets[i].n_batches);
    stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_threads = 2, .n_epochs = 1});
    const int *sample = golden_buckets[i].sample, *shape = golden_buckets[i].shape;
    for (int b = 0; b < golden_buckets[i].n_batches; b++, shape += 2) {
        int64_t n, width;
        const stk_batch *batch = stk_loader_next(loader);
        assert_non_null(batch);
        shape_of(batch, &n, &width);
        assert_int_equal(n, shape[0]);
        assert_int_equal(width, shape[1]);
        const int32_t *id = stk_batch_data(batch, "id"), *length = stk_batch_data(batch, "tokens.length");
        for (int64_t row = 0; row < n; row++) {
            assert_int_equal(id[row], *sample);
            assert_int_equal(length[row], golden_buckets[i].length[*sample++]);
        }
        check_rows(batch, -1);
        stk_batch_release(batch);
    }
    assert_null(stk_loader_next(loader));
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void agrees_with_tensorflow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(golden_buckets) / sizeof(golden_buckets[0]); i++)
        check_golden(i);
}

/* --- any workers, any start --- */

static void any_workers_and_any_start(void **state)
{
    (void)state;
    static uint64_t hash[3 * MOST_BATCHES];
    stk_dataset *dataset = make_shuffled(&default_value);
    int64_t n_batches = stk_dataset_n_batches(dataset), n = 3 * n_batches;
    assert_true(n_batches < MOST_BATCHES);
    for (int n_threads = 1; n_threads <= 8; n_threads *= 2) {
        stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_threads = n_threads, .n_epochs = 3});
        int seen[N_SAMPLES] = {0};
        for (int64_t i = 0; i < n; i++) {
            const stk_batch *batch = stk_loader_next(loader);
            assert_non_null(batch);
            check_rows(batch, 0);
            for (int64_t row = 0; row < stk_batch_count(batch); row++)
                seen[((const int32_t *)stk_batch_data(batch, "id"))[row]]++;
            if (n_threads == 1) hash[i] = stk_batch_hash(batch);
            assert_int_equal(stk_batch_hash(batch), hash[i]);
            assert_int_equal(stk_batch_index(batch), i % n_batches);
            stk_batch_release(batch);
        }
        assert_null(stk_loader_next(loader));
        for (int i = 0; i < N_SAMPLES; i++)
            assert_int_equal(seen[i], 3);
        stk_loader_close(loader);
    }
    assert_int_not_equal(hash[0], hash[n_batches]);
    for (int64_t start = 1; start < n_batches; start += 29) {
        stk_loader *by_batch = open_with(dataset, &(stk_loader_config){.n_threads = 3, .i_epoch = 1, .i_batch = start});
        for (int64_t i = n_batches + start; i < n; i++) {
            const stk_batch *batch = stk_loader_next(by_batch);
            assert_int_equal(stk_batch_hash(batch), hash[i]);
            stk_batch_release(batch);
        }
        stk_loader_close(by_batch);
    }
    stk_dataset_free(dataset);
}

/* More slots than an epoch has batches, so that several epochs are in work at once. */
static void short_epochs(void **state)
{
    (void)state;
    static uint64_t hash[300];
    static const int64_t one[] = {1000}, all[] = {30, 30};
    const stk_buckets buckets = {.boundaries = one, .batch_sizes = all, .n_boundaries = 1};
    stk_dataset *dataset = make_samples(30);
    stk_dataset_shuffle(dataset, 9);
    stk_dataset_bucket_batch(dataset, &buckets, NULL, 0);
    assert_int_equal(stk_dataset_n_batches(dataset), 1);
    for (int n_threads = 1; n_threads <= 8; n_threads *= 8) {
        stk_loader *loader =
            open_with(dataset, &(stk_loader_config){.n_threads = n_threads, .n_slots = 9, .n_epochs = 300});
        for (int i = 0; i < 300; i++) {
            const stk_batch *batch = stk_loader_next(loader);
            assert_int_equal(stk_batch_epoch(batch), i);
            assert_int_equal(stk_batch_count(batch), 30);
            if (n_threads == 1) hash[i] = stk_batch_hash(batch);
            assert_int_equal(stk_batch_hash(batch), hash[i]);
            stk_batch_release(batch);
        }
        stk_loader_close(loader);
    }
    stk_dataset_free(dataset);
}

/* --- loaders that share an epoch --- */

static int64_t take(const stk_dataset *dataset, int64_t n_shards, int64_t epoch, int64_t i_sample, int64_t n_steps,
                    int *seen)
{
    int64_t done = i_sample;
    for (int64_t i = 0; i < n_shards; i++) {
        stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_threads = 2,
                                                                     .n_shards = n_shards,
                                                                     .i_shard = i,
                                                                     .i_epoch = epoch,
                                                                     .i_sample = i_sample,
                                                                     .n_epochs = 1});
        for (int64_t k = 0; k != n_steps; k++) {
            const stk_batch *batch = stk_loader_next(loader);
            if (!batch && n_steps < 0) break;
            assert_non_null(batch);
            for (int64_t row = 0; row < stk_batch_count(batch); row++)
                seen[((const int32_t *)stk_batch_data(batch, "id"))[row]]++;
            if (stk_batch_done(batch) > done) done = stk_batch_done(batch);
            stk_batch_release(batch);
        }
        assert_int_equal(stk_loader_status(loader), STK_OK);
        stk_loader_close(loader);
    }
    return done;
}

static void shards_may_change_in_an_epoch(void **state)
{
    (void)state;
    stk_dataset *dataset = make_shuffled(&default_value);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[N_SAMPLES] = {0};
        int64_t at = take(dataset, 4, epoch, 0, 9, seen);
        assert_true(at > 0 && at < N_SAMPLES);
        at = take(dataset, 3, epoch, at, 7, seen);
        at = take(dataset, 8, epoch, at, -1, seen);
        assert_int_equal(at, N_SAMPLES);
        for (int i = 0; i < N_SAMPLES; i++)
            assert_int_equal(seen[i], 1);
    }
    stk_loader *loader = NULL;
    assert_int_equal(stk_loader_open(dataset, &(stk_loader_config){.i_sample = 1}, &loader), STK_INVALID);
    assert_string_equal(stk_error_text(), "no batch begins at sample 1 of epoch 0");
    stk_dataset_free(dataset);
}

/* --- by tokens --- */

static void batches_of_so_many_tokens(void **state)
{
    (void)state;
    stk_dataset *dataset = make_shuffled(&(stk_buckets){.tokens = 256});
    stk_loader *loader = open_with(dataset, &(stk_loader_config){.n_threads = 2, .n_epochs = 1});
    int64_t n_samples = 0, n_tokens = 0, n_places = 0, width, n;
    for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
        shape_of(batch, &n, &width);
        check_rows(batch, 0);
        assert_true(n * width <= 256);
        for (int64_t row = 0; row < n; row++)
            n_tokens += ((const int32_t *)stk_batch_data(batch, "tokens.length"))[row];
        n_samples += n;
        n_places += n * width;
        stk_batch_release(batch);
    }
    assert_int_equal(n_samples, N_SAMPLES);
    /* Less than a tenth is padding, where batches in order would be half of it. */
    assert_true(n_tokens * 10 > n_places * 9);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* Lengths after a cut count, passes of a repeat are counted, and filters come first. */
static void with_other_operations(void **state)
{
    (void)state;
    int seen[N_SAMPLES] = {0};
    stk_dataset *dataset = make_samples(N_SAMPLES);
    stk_filter_rule rule = stk_filter_rule_default();
    rule.field = "tokens", rule.least_length = 20;
    stk_dataset_filter_by(dataset, &rule);
    stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = 1, .window = 50});
    stk_dataset_repeat(dataset, 3);
    stk_dataset_bucket_batch(dataset, &default_value, &(stk_padding){.max_length = 40}, 1);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    take(dataset, 1, 0, 0, -1, seen);
    for (int64_t i = 0; i < N_SAMPLES; i++)
        assert_int_equal(seen[i], length_of(i) >= 20 ? 3 : 0);
    stk_loader *loader = open_with(dataset, NULL);
    for (int i = 0; i < 50; i++) {
        int64_t n, width;
        const stk_batch *batch = stk_loader_next(loader);
        shape_of(batch, &n, &width);
        assert_true(width >= 20 && width <= 40);
        assert_true(n == 8 || n == 5);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

/* --- refused --- */

static void refused(stk_dataset *dataset, const stk_buckets *buckets, const stk_padding *padding, const char *why)
{
    stk_dataset_bucket_batch(dataset, buckets, padding, padding ? 1 : 0);
    assert_int_not_equal(stk_dataset_status(dataset), STK_OK);
    if (!strstr(stk_error_text(), why)) fail_msg("%s", stk_error_text());
    stk_dataset_free(dataset);
}

static void what_has_no_buckets(void **state)
{
    (void)state;
    static const int64_t falling[] = {10, 10}, zero[] = {1, 0, 1};
    stk_buckets buckets = default_value;
    buckets.pad_to_boundary = true;
    refused(make_samples(100), &buckets, NULL, "a sample is 88 long, and the last boundary to pad to is 60");
    refused(make_samples(100), &(stk_buckets){.tokens = 50}, NULL, "more than the 50 tokens of a batch: cut it");
    refused(make_samples(100), &default_value, &(stk_padding){.length = 100}, "so it has no buckets");
    refused(make_samples(100), &(stk_buckets){.boundaries = falling, .batch_sizes = sizes, .n_boundaries = 2}, NULL,
            "boundary 1 is 10: they are above 0 and ascend");
    refused(make_samples(100), &(stk_buckets){.boundaries = boundaries, .batch_sizes = zero, .n_boundaries = 2}, NULL,
            "a batch of bucket 1 cannot have 0 samples");
    refused(make_samples(100), &(stk_buckets){.tokens = 500, .batch_sizes = sizes}, NULL, "exclude each other");
    refused(make_samples(100), &(stk_buckets){0}, NULL, "is missing");
    refused(make_samples(2),
            &(stk_buckets){.boundaries = boundaries, .batch_sizes = sizes, .n_boundaries = 3, .drop_remainder = true},
            NULL, "no bucket has samples for a whole batch");
    stk_dataset *dataset = make_samples(100);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_take(dataset, 50);
    refused(dataset, &default_value, NULL,
            "cannot make buckets: not after a shuffle with take, skip or shard behind it");
    dataset = make_fake(10, NULL);
    stk_dataset_apply(dataset, fake_decode(), fake_fit(), NULL);
    refused(dataset, &default_value, NULL, "has an open first side");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_tensorflow),
        cmocka_unit_test(any_workers_and_any_start),
        cmocka_unit_test(short_epochs),
        cmocka_unit_test(shards_may_change_in_an_epoch),
        cmocka_unit_test(batches_of_so_many_tokens),
        cmocka_unit_test(with_other_operations),
        cmocka_unit_test(what_has_no_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

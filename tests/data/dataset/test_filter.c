/* Filters: which samples are left and in what order, the same for any number of workers and from any start; next to
 * other order operations; corrupt records; and what cannot be filtered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>

#include "data/fake.h"
#include "golden/scan_golden.h"
#include "stoker/data/combine.h"
#include "stoker/data/filter.h"
#include "stoker/data/loader.h"

enum { N_RECORDS = 1000, MOST = 4 * N_RECORDS };

static atomic_llong n_asked;

/* user: the divisor. */
static bool divides(void *user, const stk_record_field *fields, int n_fields)
{
    atomic_fetch_add(&n_asked, 1);
    assert_int_equal(n_fields, 2);
    assert_string_equal(fields[0].name, "image");
    assert_true(fields[0].encoded);
    assert_string_equal(fields[1].name, "label");
    assert_int_equal(fields[1].n_bytes, 4);
    return *(const int32_t *)fields[1].data % *(const int *)user == 0;
}

/* The labels of an epoch from batch i_batch on. Returns how many. */
static int64_t read_labels(const stk_dataset *dataset, int64_t epoch, int64_t i_batch, int n_threads, int32_t *out)
{
    int64_t n = 0;
    stk_loader_config config = {.n_threads = n_threads, .i_epoch = epoch, .i_batch = i_batch, .n_epochs = 1};
    stk_loader *loader;
    assert_int_equal(stk_loader_open(dataset, &config, &loader), STK_OK);
    for (const stk_batch *batch; (batch = stk_loader_next(loader));) {
        memcpy(out + n, stk_batch_data(batch, "label"), (size_t)stk_batch_count(batch) * sizeof(*out));
        n += stk_batch_count(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    stk_loader_close(loader);
    return n;
}

static void finish(stk_dataset *dataset)
{
    stk_dataset_apply(dataset, fake_decode(), fake_fit(), NULL);
    stk_dataset_batch(dataset, 16, false);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
}

static void keeps_what_divides(void **state)
{
    (void)state;
    int by = 3;
    int32_t label[MOST];
    stk_dataset *dataset = make_fake(N_RECORDS, NULL);
    atomic_store(&n_asked, 0);
    stk_dataset_filter(dataset, divides, &by);
    finish(dataset);
    assert_int_equal(atomic_load(&n_asked), N_RECORDS);
    assert_int_equal(stk_dataset_count(dataset), 334);
    assert_int_equal(stk_dataset_n_batches(dataset), 21);
    for (int n_threads = 1; n_threads <= 8; n_threads *= 2) {
        assert_int_equal(read_labels(dataset, 0, 0, n_threads, label), 334);
        for (int i = 0; i < 334; i++)
            assert_int_equal(label[i], 3 * i);
    }
    assert_int_equal(atomic_load(&n_asked), N_RECORDS);
    stk_dataset_free(dataset);
}

/* As TensorFlow has it, with everything that has one order. */
static void agrees_with_tensorflow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(golden_filter) / sizeof(golden_filter[0]); i++) {
        int32_t label[MOST];
        stk_dataset *dataset = make_fake(40, NULL);
        for (const char *op = golden_filter[i].ops; *op; op += 2) {
            int arg = op[1] - '0';
            if (*op == 'f') stk_dataset_filter(dataset, divides, &arg);
            if (*op == 's') stk_dataset_skip(dataset, arg);
            if (*op == 't') stk_dataset_take(dataset, arg * 5);
            if (*op == 'r') stk_dataset_repeat(dataset, arg);
            if (*op == 'h') stk_dataset_shard(dataset, arg, 1);
        }
        finish(dataset);
        assert_int_equal(read_labels(dataset, 0, 0, 2, label), golden_filter[i].n);
        for (int k = 0; k < golden_filter[i].n; k++)
            assert_int_equal(label[k], golden_filter[i].sample[k]);
        stk_dataset_free(dataset);
    }
}

/* Before or after a shuffle is the same, every kept sample comes once in every epoch, and any start goes on exactly. */
static void shuffles_and_resumes(void **state)
{
    (void)state;
    int by = 7;
    int32_t before[MOST], after[MOST], rest[MOST];
    stk_dataset *a = make_fake(N_RECORDS, NULL), *b = make_fake(N_RECORDS, NULL);
    stk_dataset_filter(a, divides, &by);
    stk_dataset_shuffle_with(a, (stk_shuffle){.seed = 5, .window = 40});
    stk_dataset_repeat(a, 2);
    stk_dataset_shuffle_with(b, (stk_shuffle){.seed = 5, .window = 40});
    stk_dataset_repeat(b, 2);
    stk_dataset_filter(b, divides, &by);
    finish(a);
    finish(b);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[N_RECORDS] = {0};
        assert_int_equal(read_labels(a, epoch, 0, 1, before), 286);
        assert_int_equal(read_labels(b, epoch, 0, 8, after), 286);
        assert_memory_equal(before, after, 286 * sizeof(*before));
        for (int i = 0; i < 286; i++)
            seen[before[i]]++;
        for (int i = 0; i < N_RECORDS; i++)
            assert_int_equal(seen[i], i % 7 ? 0 : 2);
        for (int64_t i_batch = 1; i_batch < 18; i_batch += 5) {
            assert_int_equal(read_labels(a, epoch, i_batch, 3, rest), 286 - 16 * i_batch);
            assert_memory_equal(rest, before + 16 * i_batch, (size_t)(286 - 16 * i_batch) * sizeof(*rest));
        }
    }
    stk_dataset_free(a);
    stk_dataset_free(b);
}

/* What is chosen before and is the same in every epoch: a fixed shuffle and take, a split, an earlier filter. */
static void filters_what_is_chosen(void **state)
{
    (void)state;
    int two = 2, five = 5;
    int32_t all[MOST], label[MOST];
    stk_dataset *a = make_fake(N_RECORDS, NULL), *b = make_fake(N_RECORDS, NULL);
    stk_dataset_split(a, 0.5, false, 9);
    stk_dataset_shuffle_with(a, (stk_shuffle){.seed = 1, .once = true});
    stk_dataset_take(a, 200);
    stk_dataset_split(b, 0.5, false, 9);
    stk_dataset_shuffle_with(b, (stk_shuffle){.seed = 1, .once = true});
    stk_dataset_take(b, 200);
    stk_dataset_filter(b, divides, &two);
    stk_dataset_filter(b, divides, &five);
    finish(a);
    finish(b);
    int64_t n = read_labels(b, 4, 0, 2, label), k = 0;
    assert_int_equal(read_labels(a, 4, 0, 2, all), 200);
    for (int i = 0; i < 200; i++)
        if (all[i] % 10 == 0) assert_int_equal(label[k++], all[i]);
    assert_int_equal(k, n);
    assert_true(n > 5);
    stk_dataset_free(a);
    stk_dataset_free(b);
}

static void corrupt_records(void **state)
{
    (void)state;
    int by = 2;
    int32_t label[MOST];
    fake_source *fake;
    stk_dataset *dataset = make_fake(N_RECORDS, &fake);
    fake->bad_every = 100, fake->bad_at = 42;
    stk_dataset_filter(dataset, divides, &by);
    assert_int_equal(stk_dataset_status(dataset), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "cannot filter: '42.fake': truncated fake");
    stk_dataset_free(dataset);

    dataset = make_fake(N_RECORDS, &fake);
    fake->bad_every = 100, fake->bad_at = 42;
    stk_dataset_on_error(dataset, STK_ON_ERROR_SKIP);
    stk_dataset_filter(dataset, divides, &by);
    finish(dataset);
    assert_non_null(strstr(dataset->scan[0], "filter: 490 of 1000 records are kept, 10 cannot be read"));
    assert_int_equal(read_labels(dataset, 0, 0, 2, label), 490);
    stk_dataset_free(dataset);

    /* What is no record's fault cannot be skipped. */
    dataset = make_fake(N_RECORDS, &fake);
    fake->out_of_memory_at = 900;
    stk_dataset_on_error(dataset, STK_ON_ERROR_SKIP);
    stk_dataset_filter(dataset, divides, &by);
    assert_int_equal(stk_dataset_status(dataset), STK_NO_MEMORY);
    stk_dataset_free(dataset);
}

/* --- by rule --- */

static int64_t count_by(const stk_filter_rule *filter)
{
    stk_dataset *dataset = make_fake(30, NULL);
    stk_dataset_filter_by(dataset, filter);
    int64_t n = stk_dataset_status(dataset) == STK_OK ? stk_dataset_count(dataset) : -1;
    stk_dataset_free(dataset);
    return n;
}

static void rules(void **state)
{
    (void)state;
    static const int64_t some[] = {1, 4, 29, 77};
    stk_filter_rule filter = stk_filter_rule_default();
    assert_int_equal(count_by(&filter), 30);
    filter.values = some, filter.n_values = 4;
    assert_int_equal(count_by(&filter), 3);
    filter.drop = true;
    assert_int_equal(count_by(&filter), 27);
    filter.least = 4, filter.most = 10;
    assert_int_equal(count_by(&filter), 6);
    filter = stk_filter_rule_default();
    filter.field = "image", filter.least_bytes = 18;
    assert_int_equal(count_by(&filter), 30);
    filter.most_bytes = 17;
    assert_int_equal(count_by(&filter), -1);
    assert_string_equal(stk_error_text(), "cannot filter: none of 30 records is kept");
    filter = stk_filter_rule_default();
    filter.field = "image", filter.least = 1;
    assert_int_equal(count_by(&filter), -1);
    assert_string_equal(stk_error_text(), "field 'image' is encoded, not one number");
    filter = stk_filter_rule_default();
    filter.least_length = 1;
    assert_int_equal(count_by(&filter), -1);
    assert_string_equal(stk_error_text(), "field 'label' is i32[], which has no length");
    filter.field = "lable";
    assert_int_equal(count_by(&filter), -1);
    assert_string_equal(stk_error_text(), "source 'fake' has no field 'lable'; did you mean 'label'?");
}

/* Images of five rows are every third of varied ones. */
static void length_is_after_the_stages(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_fake(30, &fake);
    fake->varied = true;
    stk_dataset_apply(dataset, fake_decode(), NULL);
    stk_filter_rule filter = stk_filter_rule_default();
    filter.field = "image", filter.least_length = 5;
    stk_dataset_filter_by(dataset, &filter);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_count(dataset), 10);
    stk_dataset_free(dataset);
}

/* --- refused --- */

static void refused(stk_dataset *dataset, const char *why)
{
    int by = 2;
    stk_dataset_filter(dataset, divides, &by);
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), why));
    stk_dataset_free(dataset);
}

static void what_cannot_be_filtered(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(50, NULL);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_take(dataset, 10);
    refused(dataset, "cannot filter: not after a shuffle with take, skip or shard behind it");
    dataset = make_fake(50, NULL);
    stk_dataset_repeat(dataset, 2);
    stk_dataset_skip(dataset, 10);
    refused(dataset, "repeat last");
    dataset = make_fake(50, NULL);
    stk_dataset_shard_hint(dataset);
    refused(dataset, "the place for a shard");
    dataset = make_fake(50, NULL);
    stk_dataset_apply(dataset, fake_decode(), fake_fit(), NULL);
    stk_dataset_batch(dataset, 2, false);
    refused(dataset, "comes after 'batch'");
    dataset = make_fake(50, NULL);
    stk_dataset_shuffle(dataset, 1);
    refused(stk_dataset_concatenate(&dataset, 1), "filter its data sets");
    dataset = make_fake(50, NULL);
    stk_dataset_filter(dataset, NULL, NULL);
    refused(dataset, "the filter is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_divides),
        cmocka_unit_test(agrees_with_tensorflow),
        cmocka_unit_test(shuffles_and_resumes),
        cmocka_unit_test(filters_what_is_chosen),
        cmocka_unit_test(corrupt_records),
        cmocka_unit_test(rules),
        cmocka_unit_test(length_is_after_the_stages),
        cmocka_unit_test(what_cannot_be_filtered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Shards by policy: what tf.data's AutoShardPolicy was recorded to do, with its errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/fake.h"
#include "data/source/files.h"
#include "golden/order_golden.h"
#include "golden/tfrecord_golden.h"
#include "stoker/data/combine.h"
#include "stoker/data/sources.h"

/* Files of 2, 3, 4, 5 and 6 records. */
static int64_t file_of_record(const stk_source *source, int64_t i_record)
{
    int64_t i = 0;
    (void)source;
    for (int64_t first = 2; i_record >= first; first += 2 + i)
        i++;
    return i;
}

static stk_dataset *make_source(int kind)
{
    static stk_source_class class;
    fake_source *fake;
    stk_dataset *dataset = make_fake(20, &fake);
    class = fake_class;
    class.file_of = file_of_record;
    fake->base.class = &class;
    fake->base.n_files = kind == 0 ? 5 : 0;
    if (kind == 2) {
        stk_dataset_shard_hint(dataset);
        stk_dataset_skip(dataset, 1);
    }
    return dataset;
}

static void policies_are_those_of_tf_data(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(golden_shard) / sizeof(golden_shard[0]); k++) {
        stk_dataset *dataset = make_source(golden_shard[k].source);
        stk_dataset_shard_by(dataset, (stk_shard_policy)golden_shard[k].policy, golden_shard[k].n_shards,
                             golden_shard[k].i_shard);
        stk_status status = stk_dataset_status(dataset);
        bool is_error = golden_shard[k].n_samples < 0;
        assert_int_equal(status, is_error ? STK_INVALID : STK_OK);
        assert_int_equal(stk_dataset_count(dataset), is_error ? 0 : golden_shard[k].n_samples);
        for (int64_t i = 0; i < stk_dataset_count(dataset); i++)
            assert_int_equal(stk_order_map(&dataset->order, NULL, 0, i).i_record, golden_shard[k].sample[i]);
        stk_dataset_free(dataset);
    }
}

static void expect_error(stk_dataset *dataset, const char *text)
{
    assert_int_equal(stk_dataset_status(dataset), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
    stk_dataset_free(dataset);
}

static void errors_say_what_to_do(void **state)
{
    (void)state;
    stk_dataset *dataset = make_source(0);
    stk_dataset_shard_by(dataset, STK_SHARD_FILE, 7, 1);
    expect_error(dataset, "cannot shard by file: 5 files are not enough for 7 shards; shard by data");
    dataset = make_source(1);
    stk_dataset_shard_by(dataset, STK_SHARD_FILE, 2, 1);
    expect_error(dataset, "cannot shard by file: source 'fake' does not consist of files; shard by data");
    dataset = make_source(0);
    stk_dataset_skip(dataset, 1);
    stk_dataset_shard_by(dataset, STK_SHARD_FILE, 2, 1);
    expect_error(dataset, "cannot shard by file after other order operations: shard first, as it draws records");
    dataset = make_source(0);
    stk_dataset_shard_by(dataset, STK_SHARD_FILE, 2, 2);
    expect_error(dataset, "there is no shard 2 of 2: they count from 0");
    dataset = make_source(0);
    stk_dataset_shard_by(dataset, (stk_shard_policy)9, 2, 1);
    expect_error(dataset, "a shard policy cannot be 9");
    dataset = make_source(2);
    stk_dataset_shard_hint(dataset);
    expect_error(dataset, "there is a place for a shard already: one is possible");
    /* tf.data refuses a place that nothing fills, too. */
    dataset = make_source(2);
    stk_dataset_batch(dataset, 2, false);
    expect_error(dataset, "the place of 'shard_hint' is still empty: shard with the policy HINT");
    stk_dataset *parts[] = {make_source(2)};
    expect_error(stk_dataset_concatenate(parts, 1),
                 "the place of 'shard_hint' is still empty: shard with the policy HINT");
}

/* Filling the place is as if it had been a shard from the start. */
static void a_place_is_filled_in_its_turn(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(100, NULL), *plain = make_fake(100, NULL);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_shard_hint(dataset);
    stk_dataset_skip(dataset, 2);
    stk_dataset_shuffle_with(dataset, (stk_shuffle){.seed = 2, .window = 60});
    stk_dataset_repeat(dataset, 3);
    stk_dataset_take(dataset, 250);
    stk_dataset_shard(dataset, 2, 1);
    stk_dataset_shard_by(dataset, STK_SHARD_HINT, 4, 3);
    stk_dataset_shuffle(plain, 1);
    stk_dataset_shard(plain, 4, 3);
    stk_dataset_skip(plain, 2);
    stk_dataset_shuffle_with(plain, (stk_shuffle){.seed = 2, .window = 60});
    stk_dataset_repeat(plain, 3);
    stk_dataset_shard(plain, 2, 1); /* the take gives what there is: 69 */
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_count(dataset), 34);
    assert_int_equal(stk_dataset_count(plain), 34);
    for (int64_t i = 0; i < 34; i++) {
        stk_order_place a = stk_order_map(&dataset->order, NULL, 6, i), b = stk_order_map(&plain->order, NULL, 6, i);
        assert_int_equal(a.i_record, b.i_record);
        assert_int_equal(a.epoch, b.epoch);
    }
    stk_dataset_free(plain);
    stk_dataset_free(dataset);
    /* What cannot be planned again leaves the order as it was. */
    dataset = make_fake(100, NULL);
    stk_dataset_shard_hint(dataset);
    stk_dataset_skip(dataset, 60);
    assert_int_equal(stk_order_fill_hint(&dataset->order, 2, 0), STK_INVALID);
    assert_int_equal(dataset->order.count, 40);
    assert_true(stk_order_has_hint(&dataset->order));
    stk_dataset_free(dataset);
}

/* The records of real shards, after a split too. */
static void files_of_tfrecords_are_found(void **state)
{
    (void)state;
    char paths[3][512];
    const char *const list[] = {paths[0], paths[1], paths[2]};
    const stk_feature feature = {.name = "label", .dtype = STK_I64};
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof(name), "part-%d.tfrecord", i);
        snprintf(paths[i], sizeof(paths[i]), "%s", write_file(name, golden_plain, sizeof(golden_plain)));
    }
    for (int64_t i_shard = 0; i_shard < 2; i_shard++) {
        stk_dataset *dataset = stk_dataset_tfrecord(list, 3, &feature, 1, false);
        stk_dataset_shard_by(dataset, STK_SHARD_AUTO, 2, i_shard);
        assert_int_equal(stk_dataset_status(dataset), STK_OK);
        assert_int_equal(stk_dataset_count(dataset), i_shard ? 5 : 10);
        for (int64_t i = 0; i < stk_dataset_count(dataset); i++)
            assert_int_equal(stk_order_map(&dataset->order, NULL, 0, i).i_record / 5, i_shard ? 1 : 2 * (i / 5));
        stk_dataset_free(dataset);
    }
    stk_dataset *split = stk_dataset_tfrecord(list, 3, &feature, 1, false);
    stk_dataset_split(split, 0.5, false, 4);
    stk_order all = split->order;
    int64_t n = 0;
    for (int64_t i = 0; i < all.count; i++)
        n += all.kept[i] / 5 == 1;
    stk_dataset_shard_by(split, STK_SHARD_FILE, 3, 1);
    assert_int_equal(stk_dataset_count(split), n);
    for (int64_t i = 0; i < stk_dataset_count(split); i++)
        assert_int_equal(split->order.kept[i] / 5, 1);
    stk_dataset_free(split);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_are_those_of_tf_data),
        cmocka_unit_test(errors_say_what_to_do),
        cmocka_unit_test(a_place_is_filled_in_its_turn),
        cmocka_unit_test(files_of_tfrecords_are_found),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}

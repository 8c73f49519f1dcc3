/* Building data sets: errors stay with their text, chains are planned, sizes are probed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/fake.h"

/* Frees dataset after checking its error. */
static void expect_error(stk_dataset *dataset, stk_status status, const char *text)
{
    stk_fail(STK_IO, "something else has failed since");
    assert_int_equal(stk_dataset_status(dataset), status);
    assert_string_equal(stk_error_text(), text);
    assert_int_equal(stk_dataset_count(dataset), 0);
    assert_int_equal(stk_dataset_n_batches(dataset), 0);
    stk_dataset_free(dataset);
}

static void counts_follow_the_calls(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(103, NULL);
    assert_int_equal(stk_dataset_count(dataset), 103);
    assert_int_equal(stk_dataset_n_batches(dataset), 0);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_skip(dataset, 3);
    stk_dataset_repeat(dataset, 2);
    stk_dataset_shard(dataset, 3, 1);
    assert_int_equal(stk_dataset_count(dataset), 67);
    stk_dataset_batch(dataset, 10, false);
    assert_int_equal(stk_dataset_n_batches(dataset), 7);
    assert_int_equal(stk_dataset_batch_size(dataset), 10);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    const char *const *names;
    assert_int_equal(stk_dataset_classes(dataset, &names), 0);
    assert_null(names);
    stk_dataset_free(dataset);

    dataset = make_fake(103, NULL);
    stk_dataset_batch(dataset, 10, true);
    assert_int_equal(stk_dataset_n_batches(dataset), 10);
    stk_dataset_free(dataset);
    stk_dataset_free(NULL);
}

static void the_first_error_stays(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(100, NULL);
    stk_dataset_take(dataset, 1000);
    stk_dataset_skip(dataset, 1000);
    stk_dataset_apply(dataset, fake_decode(), fake_widen(), fake_widen(), NULL);
    stk_dataset_batch(dataset, 0, false);
    expect_error(dataset, STK_INVALID, "cannot take 1000 samples of 100");
}

static void batches_are_checked(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(100, NULL);
    stk_dataset_batch(dataset, 0, false);
    expect_error(dataset, STK_INVALID, "a batch cannot have 0 samples");
    dataset = make_fake(100, NULL);
    stk_dataset_batch(dataset, 101, true);
    expect_error(dataset, STK_INVALID, "100 samples do not fill one batch of 101, and the remainder is to be dropped");
    dataset = make_fake(100, NULL);
    stk_dataset_batch(dataset, 10, true);
    stk_dataset_batch(dataset, 10, true);
    expect_error(dataset, STK_INVALID, "'batch' comes after 'batch': batch last of all");
    dataset = make_fake(100, NULL);
    stk_dataset_batch(dataset, 10, true);
    stk_dataset_shuffle(dataset, 1);
    expect_error(dataset, STK_INVALID, "'shuffle' comes after 'batch': batch last of all");
    expect_error(make_fake(0, NULL), STK_INVALID, "the source has no records");
}

static void stages_that_do_not_fit_are_named(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(100, NULL);
    stk_dataset_apply(dataset, fake_widen(), NULL);
    expect_error(dataset, STK_INVALID,
                 "stage 'widen' does not fit after source 'fake' on field 'image': needs u8, not encoded images");
    dataset = make_fake(100, NULL);
    stk_dataset_apply(dataset, fake_decode(), fake_fit(), fake_widen(), fake_widen(), fake_noise(), NULL);
    expect_error(dataset, STK_INVALID,
                 "stage 'widen' does not fit after 'widen' on field 'image': needs u8, not f32[4,4,1]");
    dataset = make_fake(100, NULL);
    stk_dataset_apply_to(dataset, "lable", fake_widen());
    expect_error(dataset, STK_NOT_FOUND, "source 'fake' has no field 'lable'; did you mean 'label'?");
    dataset = make_fake(100, NULL);
    stk_dataset_apply_to(dataset, "caption", fake_widen());
    expect_error(dataset, STK_NOT_FOUND, "source 'fake' has no field 'caption'; it has 'image', 'label'");
    dataset = make_fake(100, NULL);
    stk_dataset_apply(dataset, fake_decode(), stk_stage_new_failed(STK_INVALID, "side is %d", -1), NULL);
    expect_error(dataset, STK_INVALID, "side is -1");
    dataset = make_fake(100, NULL);
    stk_dataset_apply_to(dataset, "image", fake_decode());
    for (int i = 0; i < STK_MAX_STAGES; i++)
        stk_dataset_apply_to(dataset, NULL, fake_noise());
    expect_error(dataset, STK_INVALID, "stage 'noise' is one too many: field 'image' has 16 already");
}

static void fields_are_planned_and_probed(void **state)
{
    (void)state;
    fake_source *fake;
    stk_dataset *dataset = make_fake(100, &fake);
    stk_dtype dtype;
    stk_shape shape;
    assert_int_equal(stk_dataset_field(dataset, "image", false, &dtype, &shape), STK_INVALID);
    assert_string_equal(stk_error_text(),
                        "field 'image' of source 'fake' is still encoded when it is batched: apply the stage 'decode'");
    assert_int_equal(stk_dataset_field(dataset, "label", true, &dtype, &shape), STK_OK);
    assert_int_equal(dtype, STK_I32);
    assert_int_equal(shape.rank, 0);
    stk_dataset_apply(dataset, fake_decode(), fake_widen(), NULL);
    assert_int_equal(stk_dataset_field(dataset, "image", false, &dtype, &shape), STK_OK);
    assert_true(stk_shape_equal(shape, STK_SHAPE(STK_ANY, STK_ANY, 1)));
    assert_int_equal(stk_dataset_field(dataset, "image", true, &dtype, &shape), STK_OK);
    assert_int_equal(dtype, STK_F32);
    assert_true(stk_shape_equal(shape, STK_SHAPE(4, 4, 1)));
    assert_int_equal(stk_dataset_field(dataset, "nothing", true, NULL, NULL), STK_NOT_FOUND);
    fake->bad_every = 10;
    assert_int_equal(stk_dataset_field(dataset, "image", true, &dtype, &shape), STK_CORRUPT);
    assert_string_equal(stk_error_text(), "'0.fake': truncated fake");
    stk_dataset_on_error(dataset, STK_ON_ERROR_SKIP);
    assert_int_equal(stk_dataset_field(dataset, "image", true, &dtype, &shape), STK_OK);
    stk_dataset_on_error(dataset, (stk_on_error)7);
    expect_error(dataset, STK_INVALID, "'on_error' cannot be 7");
}

static void one_image_is_transformed(void **state)
{
    (void)state;
    stk_dataset *dataset = make_fake(100, NULL);
    stk_dataset_apply(dataset, fake_decode(), fake_widen(), NULL);
    unsigned char encoded[2 + 20] = {4, 4};
    for (int i = 0; i < 20; i++)
        encoded[2 + i] = (unsigned char)(10 + i);
    float out[16];
    assert_int_equal(stk_dataset_transform(dataset, encoded, 18, out), STK_OK);
    for (int i = 0; i < 16; i++)
        assert_true(out[i] == (float)(10 + i));
    encoded[0] = 5;
    assert_int_equal(stk_dataset_transform(dataset, encoded, 22, out), STK_MISMATCH);
    assert_string_equal(stk_error_text(), "the image is [5,4,1] after stage 'widen', the batch needs [4,4,1]");
    stk_dataset_free(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_follow_the_calls),       cmocka_unit_test(the_first_error_stays),
        cmocka_unit_test(batches_are_checked),           cmocka_unit_test(stages_that_do_not_fit_are_named),
        cmocka_unit_test(fields_are_planned_and_probed), cmocka_unit_test(one_image_is_transformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Sources in memory: arrays and functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/source/files.h"

static void arrays_are_borrowed(void **state)
{
    (void)state;
    float x[5 * 6];
    int32_t y[5] = {4, 3, 2, 1, 0};
    for (int i = 0; i < 30; i++)
        x[i] = (float)i;
    const stk_array_field fields[] = {{"x", STK_F32, STK_SHAPE(2, 3), x}, {"label", STK_I32, {0}, y}};
    stk_source *source;
    stk_item item[STK_MAX_FIELDS];
    stk_scratch scratch[STK_MAX_FIELDS] = {{0}};
    char name[64];
    assert_int_equal(stk_source_open_arrays(5, fields, 2, &source), STK_OK);
    assert_int_equal(source->n_bytes, 5 * (24 + 4));
    for (int i = 0; i < 5; i++) {
        source->class->prefetch(source, i);
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        assert_ptr_equal(item[0].data, x + 6 * i);
        assert_ptr_equal(item[1].data, y + i);
        assert_int_equal(item[0].n_bytes, 24);
    }
    source->class->name_record(source, 3, name, sizeof(name));
    assert_string_equal(name, "sample 3");
    source->class->close(source);
}

static void expect_refusal(int64_t n, const stk_array_field *fields, int n_fields, const char *text)
{
    stk_source *source;
    assert_int_equal(stk_source_open_arrays(n, fields, n_fields, &source), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
}

static void wrong_fields_are_refused(void **state)
{
    (void)state;
    float x[4] = {0};
    const stk_array_field good[2] = {{"x", STK_F32, STK_SHAPE(2), x}, {"x", STK_F32, STK_SHAPE(2), x}};
    const stk_array_field open = {"x", STK_F32, STK_SHAPE(STK_ANY), x}, nameless = {NULL, STK_F32, STK_SHAPE(2), x};
    const stk_array_field no_data = {"x", STK_F32, STK_SHAPE(2), NULL}, huge = {"x", STK_F32, STK_SHAPE(1 << 30), x};
    expect_refusal(0, good, 1, "0 samples: at least 1 is needed");
    expect_refusal(2, good, 0, "0 fields: 1 to 8 are possible");
    expect_refusal(2, NULL, 1, "the fields are missing");
    expect_refusal(2, good, 2, "two fields are named 'x'");
    expect_refusal(2, &nameless, 1, "field 0 needs a name of 1 to 31 characters");
    expect_refusal(2, &open, 1, "field 'x' must have a known shape");
    expect_refusal(2, &no_data, 1, "field 'x' has no data");
    expect_refusal(INT64_MAX / 8, &huge, 1, "field 'x' of 1152921504606846975 samples is too large");
}

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    if (i_sample == 3) return STK_CORRUPT;
    if (i_sample == 4) return stk_fail(STK_IO, "no luck");
    for (int k = 0; k < 4; k++)
        ((float *)out[0])[k] = (float)(i_sample * 10 + k) + *(float *)user;
    *(int32_t *)out[1] = (int32_t)i_sample;
    return STK_OK;
}

static void functions_make_samples(void **state)
{
    (void)state;
    float user = 0.5f;
    const stk_array_field fields[] = {{"x", STK_F32, STK_SHAPE(4), NULL}, {"label", STK_I32, {0}, NULL}};
    stk_source *source;
    stk_item item[STK_MAX_FIELDS];
    stk_scratch scratch[STK_MAX_FIELDS] = {{0}};
    assert_int_equal(stk_source_open_function(5, fields, 2, NULL, NULL, &source), STK_INVALID);
    assert_int_equal(stk_source_open_function(5, fields, 2, make_sample, &user, &source), STK_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(source->class->read(source, i, scratch, item), STK_OK);
        assert_true(((float *)item[0].data)[2] == (float)(i * 10 + 2) + 0.5f);
        assert_int_equal(*(int32_t *)item[1].data, i);
    }
    assert_int_equal(source->class->read(source, 3, scratch, item), STK_CORRUPT);
    assert_string_equal(stk_error_text(),
                        "the sample function failed: corrupt data"); /* not the text of an older error */
    assert_int_equal(source->class->read(source, 4, scratch, item), STK_IO);
    assert_string_equal(stk_error_text(), "no luck");
    free_scratch(scratch);
    source->class->close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_borrowed),
        cmocka_unit_test(wrong_fields_are_refused),
        cmocka_unit_test(functions_make_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

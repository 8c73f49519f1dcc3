/* tf.train.Example: every spelling that protobuf allows means what TensorFlow makes of it; damage is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/example.h"
#include "golden/tfrecord_golden.h"

static const stk_span key_x = {(const uint8_t *)"x", 1};

/* Two numbers "x", 8 and 9 where there are none. A copy of the exact size shows a read past the end. */
static stk_status parse_x(const uint8_t *bytes, size_t n, bool is_float, double x[2])
{
    uint8_t *copy = malloc(n ? n : 1);
    stk_span value;
    float floats[2];
    int64_t ints[2];
    memcpy(copy, bytes, n);
    x[0] = 8;
    x[1] = 9;
    stk_status status = stk_example_find((stk_span){copy, n}, &key_x, 1, &value);
    if (status == STK_OK && value.data && !stk_feature_is_empty(value)) {
        stk_tensor_desc desc = stk_desc_make(is_float ? STK_F32 : STK_I64, STK_SHAPE(2));
        status = stk_feature_array(value, desc, is_float ? (void *)floats : ints);
        for (int i = 0; i < 2 && status == STK_OK; i++)
            x[i] = is_float ? (double)floats[i] : (double)ints[i];
    }
    free(copy);
    return status;
}

static void same_as_tensorflow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(golden_examples) / sizeof(golden_examples[0]); i++) {
        const golden_example *e = &golden_examples[i];
        double x[2];
        stk_status status = parse_x(e->bytes, e->n, e->is_float, x);
        if ((status != STK_OK) != e->is_refused) fail_msg("%s: %s", e->name, stk_error_text());
        if (!e->is_refused && (x[0] != e->x[0] || x[1] != e->x[1])) fail_msg("%s: %g %g", e->name, x[0], x[1]);
    }
}

static void every_cut_and_flip_is_harmless(void **state)
{
    (void)state;
    uint8_t bytes[256];
    double x[2];
    for (size_t i = 0; i < sizeof(golden_examples) / sizeof(golden_examples[0]); i++) {
        const golden_example *e = &golden_examples[i];
        for (size_t n = 0; n < e->n; n++)
            (void)parse_x(e->bytes, n, e->is_float, x);
        for (size_t bit = 0; bit < 8 * e->n; bit++) {
            memcpy(bytes, e->bytes, e->n);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            (void)parse_x(bytes, e->n, e->is_float, x);
        }
    }
}

static void expect_array(stk_span feature, stk_dtype dtype, int64_t n, stk_status want, const char *text)
{
    uint8_t dst[64];
    stk_tensor_desc desc = stk_desc_make(dtype, STK_SHAPE(n));
    assert_int_equal(stk_feature_array(feature, desc, dst), want);
    if (text) assert_string_equal(strstr(stk_error_text(), text) ? "" : stk_error_text(), "");
}

static void types_and_ranges(void **state)
{
    (void)state;
    static const int64_t values[] = {-1, 255};
    static const float floats[] = {1.5f, -2};
    static const uint8_t raw[] = {0, 0, 0xc0, 0x3f};
    stk_text features = {0}, example = {0};
    stk_span key[] = {{(const uint8_t *)"ints", 4}, {(const uint8_t *)"floats", 6}, {(const uint8_t *)"raw", 3}};
    stk_span value[3];
    stk_example_add_ints(&features, "ints", values, 2);
    stk_example_add_floats(&features, "floats", floats, 2);
    stk_example_add_bytes(&features, "raw", raw, 4);
    stk_example_finish(&features, &example);
    assert_int_equal(stk_text_status(&example), STK_OK);
    assert_int_equal(stk_example_find((stk_span){(uint8_t *)example.data, example.n}, key, 3, value), STK_OK);

    expect_array(value[0], STK_I64, 2, STK_OK, NULL);
    expect_array(value[0], STK_I32, 2, STK_OK, NULL);
    expect_array(value[0], STK_I8, 2, STK_CORRUPT, "its value 255 is outside of i8");
    expect_array(value[0], STK_U8, 2, STK_CORRUPT, "its value -1 is outside of u8");
    expect_array(value[0], STK_BOOL, 2, STK_CORRUPT, "its value -1 is outside of bool");
    expect_array(value[0], STK_F32, 2, STK_MISMATCH, "it has an Int64List, which f32[2] cannot be made of");
    expect_array(value[0], STK_I64, 1, STK_MISMATCH, "an Int64List of more than 1 values, where 1 are needed");
    expect_array(value[0], STK_I64, 3, STK_MISMATCH, "an Int64List of 2 values, where 3 are needed for i64[3]");
    expect_array(value[1], STK_I64, 2, STK_MISMATCH, "it has a FloatList");
    double wide[2];
    assert_int_equal(stk_feature_array(value[1], stk_desc_make(STK_F64, STK_SHAPE(2)), wide), STK_OK);
    assert_true(wide[0] == 1.5 && wide[1] == -2);
    float one;
    assert_int_equal(stk_feature_array(value[2], stk_desc_make(STK_F32, (stk_shape){0}), &one), STK_OK);
    assert_true(one == 1.5f);
    expect_array(value[2], STK_U8, 5, STK_MISMATCH, "it has 4 bytes, where 5 are needed for u8[5]");
    assert_memory_equal(stk_feature_in_place(value[2], stk_desc_make(STK_U8, STK_SHAPE(2, 2))), raw, 4);
    assert_null(stk_feature_in_place(value[2], stk_desc_make(STK_U8, STK_SHAPE(5))));
    assert_null(stk_feature_in_place(value[0], stk_desc_make(STK_U8, STK_SHAPE(4))));
    stk_span bytes;
    assert_int_equal(stk_feature_bytes(value[0], &bytes), STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "it has an Int64List, where a BytesList is needed"));
    stk_text_free(&features);
    stk_text_free(&example);
}

/* Groups nested too deep, and one that never ends. */
static void groups_have_a_limit(void **state)
{
    (void)state;
    uint8_t bytes[400];
    double x[2];
    memset(bytes, 9 << 3 | 3, 200);
    memset(bytes + 200, 9 << 3 | 4, 200);
    assert_int_equal(parse_x(bytes, 400, false, x), STK_CORRUPT);
    assert_int_equal(parse_x(bytes + 101, 198, false, x), STK_OK);
    assert_int_equal(parse_x(bytes + 101, 197, false, x), STK_CORRUPT);
    bytes[298] = 8 << 3 | 4; /* ends another group */
    assert_int_equal(parse_x(bytes + 101, 198, false, x), STK_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_tensorflow),
        cmocka_unit_test(every_cut_and_flip_is_harmless),
        cmocka_unit_test(types_and_ranges),
        cmocka_unit_test(groups_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

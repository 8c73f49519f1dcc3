/* A record of data that claims more than any data can be is damage, and is found before memory is asked for. */
#include "train/data_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static stk_status parse(const char *field)
{
    char text[512];
    stk_data_record *record;
    snprintf(text, sizeof(text), "{\"stoker_data\":1,\"train\":{\"records\":1,\"staged\":false,\"fields\":[%s]}}",
             field);
    stk_status status = stk_data_record_parse("data.json", text, strlen(text), &record);
    assert_true((status == STK_OK) == (record != NULL));
    stk_data_record_free(record);
    return status;
}

static stk_status parse_image(const char *height, const char *width)
{
    char text[256];
    snprintf(text, sizeof(text), "{\"name\":\"image\",\"dtype\":\"encoded\",\"height\":%s,\"width\":%s}", height,
             width);
    return parse(text);
}

static void images_are_bounded_by_sides_and_area(void **state)
{
    (void)state;
    assert_int_equal(parse_image("480", "640"), STK_OK);
    assert_int_equal(parse_image("0", "0"), STK_OK); /* not known */
    assert_int_equal(parse_image("16384", "16384"), STK_OK);
    assert_int_equal(parse_image("16384", "16385"), STK_CORRUPT);
    assert_int_equal(parse_image("65535", "65535"), STK_CORRUPT);
    assert_int_equal(parse_image("1", "65536"), STK_CORRUPT);
    assert_int_equal(parse_image("-1", "-1"), STK_CORRUPT);
    assert_int_equal(parse_image("0", "7"), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "an image's size"));
}

static void arrays_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(parse("{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[1024,1024,1024]}"), STK_OK);
    assert_int_equal(parse("{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[1024,1024,1025]}"), STK_CORRUPT);
}

static void names_are_there_once(void **state)
{
    (void)state;
    assert_int_equal(
        parse("{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[2]},{\"name\":\"y\",\"dtype\":\"f32\",\"shape\":[]}"),
        STK_OK);
    assert_int_equal(
        parse("{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[2]},{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[]}"),
        STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "two fields of one name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_bounded_by_sides_and_area),
        cmocka_unit_test(arrays_are_bounded),
        cmocka_unit_test(names_are_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

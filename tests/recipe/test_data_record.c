/* A record of data that claims more than any data can be is damage, and is found before memory is asked for. */
#include "recipe/data_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "data/dataset/dataset.h"
#include "stoker/data/sources.h"

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

static void a_memory_limit_is_told(void **state)
{
    (void)state;
    const char *path = "record-large.jpg";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate(path, 4 << 20), 0);
    stk_dataset *dataset = stk_dataset_files(&path, 1, STK_LABELS_NONE, NULL);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    dataset->memory_limit_bytes = 1 << 20;
    stk_recipe recipe = {.part = {{0}}};
    const stk_dataset *part[STK_N_PARTS] = {dataset};
    stk_text text = {0};
    assert_int_equal(stk_data_record_print(&recipe, part, &text), STK_NO_MEMORY);
    if (!strstr(stk_error_text(), "4.00 MiB")) fail_msg("'%s' does not say how large it is", stk_error_text());
    stk_text_free(&text);
    stk_dataset_free(dataset);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_bounded_by_sides_and_area),
        cmocka_unit_test(arrays_are_bounded),
        cmocka_unit_test(names_are_there_once),
        cmocka_unit_test(a_memory_limit_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

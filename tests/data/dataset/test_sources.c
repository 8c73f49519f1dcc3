/* Sources out of settings: every descriptor is whole, a text gives a data set, and errors begin with their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "data/source/files.h"
#include "data/source/source_list.h"

static void every_descriptor_is_whole(void **state)
{
    (void)state;
#define X(kind)                                                                                                        \
    assert_string_equal(stk_source_kind_##kind.key.name, #kind);                                                       \
    assert_non_null(stk_source_kind_##kind.key.doc);                                                                   \
    assert_non_null(stk_source_kind_##kind.open);
    STK_SOURCE_LIST(X)
#undef X
    assert_null(stk_source_kind_find("imagse"));
}

static void a_text_is_a_data_set(void **state)
{
    (void)state;
    char text[4096];
    stk_dtype dtype;
    stk_shape shape;
    write_file("a.txt", "one\ntwo\n", 8);
    snprintf(text, sizeof(text), "{text: {files: ['%s'], skip: 1}}", in_folder("a.txt"));
    stk_dataset *dataset = stk_dataset_parse(text);
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_int_equal(stk_dataset_count(dataset), 1);
    stk_dataset_free(dataset);
    dataset = stk_dataset_parse("{synthetic: {fields: {image: [2, 3]}, classes: 7, samples: 11}}");
    assert_int_equal(stk_dataset_count(dataset), 11);
    assert_int_equal(stk_dataset_field(dataset, "image", false, &dtype, &shape), STK_OK);
    assert_true(dtype == STK_F32 && stk_shape_equal(shape, STK_SHAPE(2, 3)));
    stk_dataset_free(dataset);
}

static void refuse(const char *text, const char *why)
{
    stk_dataset *dataset = stk_dataset_parse(text);
    assert_int_not_equal(stk_dataset_status(dataset), STK_OK);
    if (!strstr(stk_error_text(), why)) fail_msg("%.60s: no '%s' in '%s'", text ? text : "NULL", why, stk_error_text());
    stk_dataset_free(dataset);
}

/* Of settings and of data. */
static void errors_begin_with_their_place(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "{images: F}",
        "{idx: {images: F, labels: F}}",
        "{files: {paths: F, labels: F, by: folder}}",
        "{pairs: {image: F, mask: F}}",
        "{volumes: F}",
        "{video: {files: F, frames: 2}}",
        "{npy: F}",
        "{tfrecord: {files: F, parse_example: {label: i64}}}",
        "{tar: {files: F, fields: {image: jpg}}}",
        "{csv: {files: F, fields: {x: f32}}}",
        "{text: {files: [F, F/none]}}",
        "{tokens: F}",
        "{synthetic: {fields: {image: [1000000000000, 1000000000000]}}}",
    };
    write_file("F", "nothing that is known", 21);
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        char text[4096];
        size_t n = 0;
        for (const char *c = sources[i]; *c; c++)
            n +=
                (size_t)snprintf(text + n, sizeof(text) - n, *c == 'F' ? "%s" : "%.1s", *c == 'F' ? in_folder("F") : c);
        refuse(text, "source:1:");
    }
    refuse(NULL, "'text' is NULL");
    refuse("{imagse: x}", "no source 'imagse' (did you mean 'images'?)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_descriptor_is_whole),
        cmocka_unit_test(a_text_is_a_data_set),
        cmocka_unit_test(errors_begin_with_their_place),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}

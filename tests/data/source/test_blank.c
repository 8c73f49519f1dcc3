/* What stands for data that are not there: fields and classes as they were, records of nothing, and what cannot be
 * stood for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/source/blank.h"
#include "data/source/files.h"

static stk_scratch scratch[STK_MAX_FIELDS];

static const stk_blank_field fields[] = {
    {.name = "image", .type = {.kind = STK_FIELD_ENCODED}, .height = 5, .width = 7},
    {.name = "x", .type = {.kind = STK_FIELD_ARRAY, .desc = {.dtype = STK_F32, .shape = STK_SHAPE(3)}}}};

static void records_are_blank(void **state)
{
    static const char *const classes[] = {"cat", "dog"};
    const float zeros[3] = {0};
    stk_item item[STK_MAX_FIELDS];
    stk_source *source;
    (void)state;
    assert_int_equal(stk_source_open_blank(9, fields, 2, classes, 2, &source), STK_OK);
    assert_int_equal(source->n_records, 9);
    assert_int_equal(source->n_fields, 2);
    assert_int_equal(source->n_classes, 2);
    assert_string_equal(source->class_names[1], "dog");
    assert_int_equal(source->class->read(source, 8, scratch, item), STK_OK);
    assert_memory_equal(item[0].data, "\x89PNG", 4);
    assert_int_equal(item[1].n_bytes, sizeof(zeros));
    assert_memory_equal(item[1].data, zeros, sizeof(zeros));
    source->class->close(source);
}

static void refuse(int64_t n_records, const stk_blank_field *field, int n_fields, const char *text)
{
    stk_source *source;
    assert_int_equal(stk_source_open_blank(n_records, field, n_fields, NULL, 0, &source), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
    assert_null(source);
}

static void what_cannot_be_stood_for_is_refused(void **state)
{
    stk_blank_field open = {.name = "x", .type = {.desc = {.dtype = STK_F32, .shape = STK_SHAPE(STK_ANY)}}};
    (void)state;
    open.type.kind = STK_FIELD_ARRAY;
    refuse(0, fields, 2, "2 fields and 0 records cannot be stood for");
    refuse(9, fields, 0, "0 fields and 9 records cannot be stood for");
    refuse(9, fields, STK_MAX_FIELDS + 1, "9 fields and 9 records cannot be stood for");
    refuse(9, &open, 1, "a blank field 'x' needs a whole shape");
}

static int tear_down(void **state)
{
    (void)state;
    free_scratch(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_are_blank),
                                       cmocka_unit_test(what_cannot_be_stood_for_is_refused)};
    return cmocka_run_group_tests(tests, NULL, tear_down);
}

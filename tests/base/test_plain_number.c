#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/plain_number.h"
#include "base/text.h"

static void numbers_are_written_as_people_do(void **state)
{
    (void)state;
    char t[STK_PLAIN_TEXT];
    static const struct {
        const char *(*write)(double x, char out[STK_PLAIN_TEXT]);
        double x;
        const char *text;
    } cases[] = {
        {stk_plain_number, 3450, "3,450"},
        {stk_plain_number, 34567.8, "34,568"},
        {stk_plain_number, -12345.6, "-12,346"},
        {stk_plain_number, 0.83124, "0.8312"},
        {stk_plain_number, 0, "0"},
        {stk_plain_number, 999.96, "1,000"},
        {stk_plain_number, 1e-5, "1e-5"},
        {stk_plain_number, 3.2e-12, "3.2e-12"},
        {stk_plain_number, 1e20, "1e20"},
        {stk_plain_number, NAN, "NaN"},
        {stk_plain_loss, NAN, "NaN"},
        {stk_plain_number, -INFINITY, "-inf"},
        {stk_plain_loss, 0.71312, "0.7131"},
        {stk_plain_loss, 1234567.1, "1,234,567"},
        {stk_plain_loss, 0.000031, "3.1e-5"},
        {stk_plain_loss, 0, "0.0000"},
        {stk_plain_rate, 19194.2, "19,194"},
        {stk_plain_rate, 14.21, "14.2"},
        {stk_plain_rate, 0.534, "0.53"},
        {stk_plain_rate, 0.00123, "0.00123"},
        {stk_plain_rate, 0, "0"},
        {stk_plain_bytes, 1.31 * 1073741824, "1.31 GiB"},
        {stk_plain_bytes, 12, "12 B"},
        {stk_plain_flops, 1.11e9, "1.11 GFLOP"},
        {stk_plain_duration, 11342, "3:09:02"},
        {stk_plain_duration, 67, "1:07"},
        {stk_plain_duration, 12.4, "12 s"},
        {stk_plain_duration, 0.82, "0.8 s"},
        {stk_plain_duration, 0.0123, "0.0 s"},
        {stk_plain_time, 0.0123, "12.3 ms"},
        {stk_plain_time, 0.00035, "350 us"},
        {stk_plain_time, 1.519, "1.52 s"},
        {stk_plain_time, 0.9999, "1.00 s"},
        {stk_plain_time, 0, "0.00 s"},
        {stk_plain_duration, -1, "?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(cases[i].write(cases[i].x, t), cases[i].text);
}

static void a_word_is_not_offered_for_itself_or_for_one_far_off(void **state)
{
    (void)state;
    static const char *const names[] = {"name", "pad", "images", "optimizer", "lr", NULL};
    assert_null(stk_nearest_name("sgd", names));
    assert_null(stk_nearest_name("lr", (const char *const[]){"lr", NULL}));
    assert_string_equal(stk_nearest_name("lrr", names), "lr");
    assert_string_equal(stk_nearest_name("optimzer", names), "optimizer");
    assert_string_equal(stk_nearest_name("imagse", names), "images");
    assert_null(stk_nearest_name("xy", names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_written_as_people_do),
                                       cmocka_unit_test(a_word_is_not_offered_for_itself_or_for_one_far_off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

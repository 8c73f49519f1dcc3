#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static void counts_are_grouped_in_threes(void **state)
{
    (void)state;
    char text[STK_COUNT_TEXT];
    assert_string_equal(stk_count_text(0, text), "0");
    assert_string_equal(stk_count_text(999, text), "999");
    assert_string_equal(stk_count_text(1000, text), "1,000");
    assert_string_equal(stk_count_text(1234567, text), "1,234,567");
    assert_string_equal(stk_count_text(INT64_MAX, text), "9,223,372,036,854,775,807");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_grouped_in_threes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

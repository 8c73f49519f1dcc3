/* Numbers as commands print them: what is read is a number whole, or nothing. */
#include "bench/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
        size_t length;
    } good[] = {{"12", 12, 2},
                {" -3.5 s", -3.5, 5},
                {"1,234.5 images/s", 1234.5, 7},
                {"12,345,678", 12345678, 10},
                {"1_000 EUR", 1000, 5},
                {"3e-4", 3e-4, 4},
                {"2E3x", 2000, 3},
                {"5 EUR", 5, 1},
                {"5e", 5, 1},
                {"5, then 6", 5, 1},
                {"7. End", 7, 2},
                {".5", 0.5, 2},
                {"1,234,end", 1234, 5},
                {"0.30 EUR/kWh", 0.3, 4}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        double x = -1;
        assert_int_equal(stk_bench_read_number(good[i].text, strlen(good[i].text), &x), good[i].length);
        assert_true(x == good[i].value);
    }
    static const char *const bad[] = {"",       "x",        "-",        ".",       "1,5", "1.234,5",
                                      "12.5.3", "1,23,456", "1234,567", "12,3456", "e5",  "+ 3"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        double x;
        assert_int_equal(stk_bench_read_number(bad[i], strlen(bad[i]), &x), 0);
    }
    double x;
    assert_int_equal(stk_bench_read_number("1234", 2, &x), 2); /* no more than is told */
    assert_true(x == 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

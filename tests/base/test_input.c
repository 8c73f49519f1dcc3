/* Parts of what lies in memory: all that is there, nothing behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/input.h"

static void parts_end_where_the_input_does(void **state)
{
    (void)state;
    static const uint8_t bytes[4] = {1, 2, 3, 4};
    uint8_t out[4] = {0};
    stk_input input = stk_input_of_memory((stk_span){bytes, 4});
    assert_int_equal(stk_input_read(&input, 0, out, 4), STK_OK);
    assert_memory_equal(out, bytes, 4);
    assert_int_equal(stk_input_read(&input, 3, out, 1), STK_OK);
    assert_int_equal(out[0], 4);
    assert_int_equal(stk_input_read(&input, 4, out, 0), STK_OK);
    assert_int_not_equal(stk_input_read(&input, 3, out, 2), STK_OK);
    assert_int_not_equal(stk_input_read(&input, 4, out, 1), STK_OK);
    assert_int_not_equal(stk_input_read(&input, UINT64_MAX, out, 2), STK_OK);
    stk_input_close(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_end_where_the_input_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Numbers by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/name_table.h"

static void every_name_is_found(void **state)
{
    (void)state;
    enum { N = 5000 };
    static char name[N][16];
    stk_name_table table = {0};
    assert_int_equal(stk_name_table_find(&table, "x"), -1);
    for (int i = 0; i < N; i++) {
        snprintf(name[i], sizeof(name[i]), "name.%d", i * 7);
        assert_int_equal(stk_name_table_find(&table, name[i]), -1);
        assert_int_equal(stk_name_table_add(&table, name[i], i), STK_OK);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(stk_name_table_find(&table, name[i]), i);
    assert_int_equal(stk_name_table_find(&table, "name.1"), -1);
    assert_int_equal(stk_name_table_find(&table, ""), -1);
    assert_int_equal(stk_name_table_find_part(&table, "name.77 and more", 7), 11);
    assert_int_equal(stk_name_table_find_part(&table, "name.77 and more", 6), 1);
    assert_int_equal(stk_name_table_find_part(&table, "name.77 and more", 5), -1);
    stk_name_table_free(&table);
    assert_int_equal(stk_name_table_find(&table, name[0]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_name_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

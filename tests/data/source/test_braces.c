/* Braces in paths: ranges with and without width, lists, several of them, and what is no braces at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/source/braces.h"
#include "data/source/paths.h"

static void expect(const char *path, const char *want)
{
    stk_names names = {0};
    size_t capacity = 0;
    char got[512] = "";
    assert_int_equal(stk_braces_expand(path, &names, &capacity), STK_OK);
    for (size_t i = 0; i < names.n; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? " " : "", names.name[i]);
    assert_string_equal(got, want);
    stk_names_free(&names);
}

static void braces_make_paths(void **state)
{
    (void)state;
    expect("x-{000..003}.tar", "x-000.tar x-001.tar x-002.tar x-003.tar");
    expect("{8..11}", "8 9 10 11");
    expect("{08..11}", "08 09 10 11");
    expect("{2..0}", "2 1 0");
    expect("{5..5}", "5");
    expect("{a,b,}/x", "a/x b/x /x");
    expect("{a,b}-{0..1}.t", "a-0.t a-1.t b-0.t b-1.t");
    expect("http://h/{00..01}.tar", "http://h/00.tar http://h/01.tar");
    expect("{x}{0..1}", "{x}0 {x}1");
    const char *const as_they_are[] = {"x",      "{}",      "{a}", "{1..}", "{..2}",
                                       "{1..x}", "{1...3}", "x{",  "}x{",   "{1234567890123456..1234567890123457}"};
    for (size_t i = 0; i < sizeof(as_they_are) / sizeof(as_they_are[0]); i++)
        expect(as_they_are[i], as_they_are[i]);
}

static void there_is_a_most(void **state)
{
    (void)state;
    stk_names names = {0};
    size_t capacity = 0;
    assert_int_equal(stk_braces_expand("{0..9999999}", &names, &capacity), STK_UNSUPPORTED);
    assert_non_null(strstr(stk_error_text(), "make more than 1048576 paths"));
    stk_names_free(&names);
}

/* A file whose name has braces is that file, and patterns may stand next to braces. */
static void files_come_first(void **state)
{
    (void)state;
    const char *const made[] = {"braces-{0..1}.bin", "braces-0.bin", "braces-1.bin"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(stk_file_write_durably(made[i], "x", 1), STK_OK);
    for (int k = 0; k < 2; k++) {
        const char *path = k ? "braces-{0..1}.b*" : made[0];
        stk_names names;
        assert_int_equal(stk_paths_expand(&path, 1, false, &names), STK_OK);
        assert_int_equal(names.n, k ? 2 : 1);
        for (size_t i = 0; i < names.n; i++)
            assert_string_equal(names.name[i], made[k ? i + 1 : 0]);
        stk_names_free(&names);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(remove(made[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(braces_make_paths),
        cmocka_unit_test(there_is_a_most),
        cmocka_unit_test(files_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
